package failover_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// In a total outage repeats do not multiply the load, and a call that fails alone still gets all of its own.
func TestTotalOutage(t *testing.T) {
	for name, fail := range map[string]http.HandlerFunc{"503": status(503), "500": status(500), "broken": hangUp} {
		inWorld(t, func(w *world) {
			home, one, two := w.serve(project, ok), w.serve(region1, fail), w.serve(region2, fail)
			home.setList(regions("86400", region1, region2))
			other := w.serve("other.livekit.cloud", fail)
			rt := w.transport()
			known(w, rt, project)
			home.set(fail)

			var mu sync.Mutex
			var spent, others int
			var first failover.Trail
			var callers sync.WaitGroup
			calls := make(chan int, 2000)
			for i := range cap(calls) {
				calls <- i
			}
			close(calls)
			for range 64 {
				callers.Go(func() {
					for i := range calls {
						r := w.post(context.Background(), rt, project, failover.Call{Repeat: failover.Safe})
						mu.Lock()
						if r.trail.BudgetSpent {
							if spent++; spent == 1 {
								first = r.trail
							}
						}
						mu.Unlock()
						if name != "broken" && (r.err != nil || r.status/100 != 5) {
							t.Errorf("%s: %d, %v", name, r.status, r.err)
						}
						if r.err != nil && r.trail.BudgetSpent && !strings.Contains(r.err.Error(), "retry budget") {
							t.Errorf("%s: the error does not name the budget: %v", name, r.err)
						}
						if i == 1000 { // another host has a budget of its own
							others = len(w.post(context.Background(), rt, "other.livekit.cloud", failover.Call{Repeat: failover.Safe}).trail.Attempts)
						}
					}
				})
			}
			callers.Wait()
			total := 0
			for _, n := range requests(home, one, two) {
				total += n
			}
			if per := float64(total-1) / 2000; per > 1.35 {
				t.Errorf("%s: %.3f requests a call, want at most 1.35", name, per)
			} else {
				t.Logf("%s: %.3f requests a call; %d calls met the spent budget", name, per, spent)
			}
			if spent == 0 || !strings.Contains(first.Attempts[len(first.Attempts)-1].Reason, "retry budget") {
				t.Errorf("%s: %d calls met the spent budget, the first: %+v", name, spent, first)
			}
			if n := len(home.listed()) + len(other.listed()); n > 3 {
				t.Errorf("%s: %d region list requests", name, n)
			}
			if others != 3 {
				t.Errorf("%s: a call to another host meanwhile got %d attempts, want 3", name, others)
			}

			pass(3 * time.Second)
			if n := len(w.post(context.Background(), rt, project, failover.Call{Repeat: failover.Safe}).trail.Attempts); n != 3 {
				t.Errorf("%s: a lone failing call afterwards got %d attempts, want 3", name, n)
			}
			synctest.Wait()
		})
	}
}

// The budget concerns repeats alone: in an outage of home everyone is served, and 451 steps are free.
func TestBudgetDoesNotStopFirstAttempts(t *testing.T) {
	inWorld(t, func(w *world) {
		home, one := w.serve(project, status(503)), w.serve(region1, status(503))
		home.setList(regions("86400", region1))
		rt := w.transport()
		for range 200 { // spend it
			w.post(context.Background(), rt, project, failover.Call{Repeat: failover.Safe})
		}
		if r := w.post(context.Background(), rt, project, failover.Call{}); !r.trail.BudgetSpent {
			t.Fatalf("the budget is not spent: %+v", r.trail)
		}
		one.set(ok)
		home.set(status(451))
		if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 || r.trail.BudgetSpent {
			t.Errorf("a 451 step was not free: %d, %v", r.status, r.err)
		}
		home.set(ok)
		if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 {
			t.Errorf("a first attempt was not made: %d, %v", r.status, r.err)
		}
	})
}

// A slow attempt is not cut when the budget allows no other.
func TestSlowAttemptGoesOnWithoutBudget(t *testing.T) {
	for class, call := range classes {
		inWorld(t, func(w *world) {
			s := w.serve(cloud, status(503))
			rt := w.transport()
			for range 3 {
				w.atOnce(60, rt, cloud, failover.Call{Repeat: failover.Safe})
			}
			var seen sync.Map // a repeat is answered at once
			s.set(func(rw http.ResponseWriter, r *http.Request) {
				if _, again := seen.LoadOrStore(r.Header.Get(failover.RequestIDHeader), true); again {
					ok(rw, r)
					return
				}
				after(14*time.Second, ok)(rw, r)
			})
			callers := 40 // more than the budget regains meanwhile
			before := len(s.asked())
			replies := w.atOnce(callers, rt, cloud, call)
			served := 0
			for _, r := range replies {
				if r.status == 200 {
					served++
				}
			}
			if served != callers {
				t.Errorf("%s: %d of %d slow calls were answered", class, served, callers)
			}
			if n := len(s.asked()) - before; class == "once" && n != callers {
				t.Errorf("%s: %d requests", class, n)
			}
		})
	}
}
