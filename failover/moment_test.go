package failover_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// An attempt that ends in the very moment of the dial limit is neither lost nor told twice, whether it ends by an answer, by the
// deadline or by a cancel.
func TestEndInTheMomentOfALimit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(own, after(3*time.Second, ok))
		w.serve(project, after(3*time.Second, ok))
		w.serve(cloud, hang)
		var told, answered, ended atomic.Int64
		rt := w.transport(failover.OnAttempt(func(context.Context, failover.Attempt) { told.Add(1) }))
		known(w, rt, project)
		told.Store(0)
		const calls = 300
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				pass(rand.N(10 * time.Millisecond))
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				host := []string{own, project, cloud}[i%3]
				switch {
				case host == cloud && i%2 == 0:
					time.AfterFunc(3*time.Second, cancel)
				case host == cloud:
					ctx, cancel = context.WithTimeout(ctx, 3*time.Second)
					defer cancel()
				}
				r := w.post(ctx, rt, host, failover.Call{})
				switch {
				case host != cloud && r.status == 200 && r.err == nil && r.took == 3*time.Second:
					answered.Add(1)
				case host == cloud && errors.Is(r.err, ctx.Err()) && r.took == 3*time.Second:
					ended.Add(1)
				default:
					t.Errorf("%s: %d, %v after %v", host, r.status, r.err, r.took)
				}
				if len(r.trail.Attempts) != 1 {
					t.Errorf("%s: attempts %v", host, r.trail.Attempts)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if answered.Load() != calls*2/3 || ended.Load() != calls/3 || told.Load() != calls {
			t.Errorf("%d answered, %d ended, %d attempts told of %d calls", answered.Load(), ended.Load(), told.Load(), calls)
		}
	})
}

// An observer that panics, or leaves its goroutine, does so to the caller while the call runs.
func TestObserverThatPanics(t *testing.T) {
	for name, leave := range map[string]func(){
		"panic":  func() { panic("as asked") },
		"Goexit": runtime.Goexit,
	} {
		inWorld(t, func(w *world) {
			w.serve(project, after(4*time.Second, ok))
			rt := w.transport(failover.WithoutPrefetch(), failover.OnAttempt(func(context.Context, failover.Attempt) { leave() }))
			var got any
			returned := false
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { got = recover() }()
				w.post(context.Background(), rt, project, failover.Call{})
				returned = true
			})
			wg.Wait()
			if want := map[string]any{"panic": "as asked"}[name]; returned || got != want {
				t.Errorf("%s: the call returned %t, recovered %v", name, returned, got)
			}
		})
	}
}
