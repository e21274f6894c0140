package failover_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/lkrpc/lkrpc/failover"
)

// A caller may change its request once the body is closed and the call is over, also where that was so sudden that the attempt has
// not begun. The race detector watches.
func TestRequestIsTheCallersAgain(t *testing.T) {
	rt, err := failover.New(roundTripper(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	req := request(project, nil, 0)
	for range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := rt.RoundTrip(req.WithContext(ctx)); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		req.Header.Set("X-Try", "again")
		req.URL.Path = method
	}
}

// An answer to HEAD has no body, and says how long another's would be.
func TestLengthOfAnAnswerToHead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(project, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			ok(w, r)
		})
		req := request(project, nil, 0)
		req.Method = http.MethodHead
		resp, err := w.transport().RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.ContentLength != 5 {
			t.Errorf("the length is %d, want 5", resp.ContentLength)
		}
	})
}
