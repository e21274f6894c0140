package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// BenchmarkEnsureDispatch tells how long EnsureDispatch takes on a livekit-server with a worker, in milliseconds: ms/ensure on
// average, worst-ms at most. Under a second is what users may expect where the room is new; no test asserts it, since a busy machine
// would break that.
//
//	go test -C testdata/e2e -run '^$' -bench EnsureDispatch -benchtime 50x
func BenchmarkEnsureDispatch(b *testing.B) {
	s, c := liveKit(b)
	w := startWorker(b, s, "greeter")
	go func() { // the jobs need nothing done, but must not pile up
		for {
			select {
			case <-w.Jobs:
			case <-b.Context().Done():
				return
			}
		}
	}()
	rooms := 0
	for _, bench := range []struct {
		name   string
		exists bool // the room is there
		there  bool // so is the dispatch
	}{
		{"new-room", false, false},
		{"room-that-is-there", true, false},
		{"dispatch-that-is-there", true, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var worst time.Duration
			for b.Loop() {
				b.StopTimer()
				rooms++
				room := fmt.Sprint("room-", rooms)
				if bench.exists {
					if _, err := c.Room.CreateRoom(b.Context(), &livekit.CreateRoomRequest{Name: room}); err != nil {
						b.Fatal(err)
					}
				}
				if bench.there {
					ensure(b, c, room, true)
				}
				b.StartTimer()
				began := time.Now()
				ensure(b, c, room, !bench.there)
				worst = max(worst, time.Since(began))
				b.StopTimer()
				if _, err := c.Room.DeleteRoom(b.Context(), &livekit.DeleteRoomRequest{Room: room}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/ensure")
			b.ReportMetric(worst.Seconds()*1000, "worst-ms")
		})
	}
}
