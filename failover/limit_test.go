package failover_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// Each of many calls gives up its own dial after its own 3 s, beside others that are answered.
func TestEachCallsDialHasItsLimit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.net.BlackHole(own+":80", true)
		w.serve(project, after(time.Second, ok))
		rt := w.transport()
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				pass(rand.N(8 * time.Second))
				if i%2 == 0 {
					if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 || r.took != time.Second {
						t.Errorf("a healthy call: %d, %v after %v", r.status, r.err, r.took)
					}
					return
				}
				r := w.post(context.Background(), rt, own, failover.Call{})
				var e *failover.Error
				if !errors.As(r.err, &e) || r.took != 3*time.Second || e.OutcomeUnknown {
					t.Errorf("a call without a connection: %v after %v", r.err, r.took)
				}
			})
		}
		wg.Wait()
		pass(10 * time.Second)
		if r := w.post(context.Background(), rt, own, failover.Call{}); r.took != 3*time.Second {
			t.Errorf("after a pause: %v after %v", r.err, r.took)
		}
	})
}
