package lkrpc

import (
	"context"
	"testing"
)

// Whether the last caller leaves before a creation or after it began is decided in one step: before, there is none any more;
// after, the flight goes on and the caller is told.
func TestLeavingAndCreatingExcludeEachOther(t *testing.T) {
	for _, leaveFirst := range []bool{true, false} {
		var fs flights
		begin, begun, end := make(chan bool), make(chan error), make(chan bool)
		f := fs.join(t.Context(), flightKey{"r", "a", ""}, func(ctx context.Context, f *flight) {
			<-begin
			begun <- fs.create(ctx, f)
			<-end
			begun <- ctx.Err()
		})
		if leaveFirst {
			if fs.leave(f) {
				t.Error("a creation is reported that has not begun")
			}
			close(begin)
			if err := <-begun; err == nil {
				t.Error("a creation begins after the last caller has left")
			}
		} else {
			close(begin)
			if err := <-begun; err != nil {
				t.Error(err)
			}
			if !fs.leave(f) {
				t.Error("the creation is not reported")
			}
		}
		close(end)
		if err := <-begun; (err != nil) != leaveFirst {
			t.Errorf("the last caller left first: %v; the flight's context: %v", leaveFirst, err)
		}
		<-f.done
	}
}
