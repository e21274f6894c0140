package failover_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A repeat costs one token, also where a slow attempt was cut for it: 80 are within a budget of 100.
func TestCutAttemptCostsOneToken(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, hang)
		w.serve(region1, ok)
		home.setList(regions("3600", region1))
		rt := w.transport()
		var all sync.WaitGroup
		for range 80 {
			all.Go(func() {
				if r := w.post(context.Background(), rt, project, classes["keyed"]); r.status != 200 || len(r.trail.Attempts) != 2 || r.trail.BudgetSpent {
					t.Errorf("%d, %v after %d attempts; budget spent: %t", r.status, r.err, len(r.trail.Attempts), r.trail.BudgetSpent)
				}
			})
		}
		all.Wait()
	})
}

// A cause that the caller gave its context is found in the error, beside the context's own.
func TestCauseOfTheCaller(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(project, hang)
		rt := w.transport()
		shutdown := errors.New("the service is shutting down")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(shutdown) })
		r := w.post(ctx, rt, project, failover.Call{})
		if !errors.Is(r.err, shutdown) || !errors.Is(r.err, context.Canceled) || r.took != time.Second {
			t.Errorf("%v after %v", r.err, r.took)
		}
	})
}

// An Error and the Trail of the same call are apart: who changes one does not change the other.
func TestErrorKeepsItsAttempts(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(cloud, hangUp)
		r := w.post(context.Background(), w.transport(), cloud, classes["safe"])
		var e *failover.Error
		if !errors.As(r.err, &e) || len(e.Attempts) != 3 || len(r.trail.Attempts) != 3 {
			t.Fatalf("%v; the trail has %d attempts", r.err, len(r.trail.Attempts))
		}
		r.trail.Attempts[0] = failover.Attempt{}
		if e.Attempts[0].Number != 1 {
			t.Error("what was done to the trail was done to the error")
		}
	})
}
