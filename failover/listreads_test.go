package failover_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// Many calls that meet a 451 share the reads of the list, be it slow, silent or broken.
func TestListReadsAfter451(t *testing.T) {
	for name, list := range map[string]http.HandlerFunc{
		"slow": after(1500*time.Millisecond, regions("60", region1)), "silent": hang, "broken": status(500),
	} {
		inWorld(t, func(w *world) {
			home := w.serve(project, after(20*time.Millisecond, status(451)))
			w.serve(region1, ok)
			var now, most atomic.Int64
			home.setList(func(rw http.ResponseWriter, r *http.Request) {
				n := now.Add(1)
				defer now.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				list(rw, r)
			})
			rt := w.transport()
			var calls sync.WaitGroup
			for range 200 {
				calls.Go(func() { w.post(context.Background(), rt, project, failover.Call{}) })
				pass(5 * time.Millisecond)
			}
			calls.Wait()
			if n := len(home.listed()); most.Load() > 2 || name == "broken" && n > 3 {
				t.Errorf("%s: %d reads within a second, %d at one time", name, n, most.Load())
			}
		})
	}
}

// A transport that holds a read for good does not keep others from being made.
func TestReadThatDoesNotEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		home, _ := w.serve(project, ok), w.serve(region1, ok)
		home.setList(regions("300", region1))
		end := make(chan struct{})
		var reads atomic.Int64
		rt := w.transport(failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path == "/settings/regions" && reads.Add(1) == 1 {
					<-end
					return nil, errors.New("ended")
				}
				return next.RoundTrip(req)
			})
		}))
		known(w, rt, project)
		pass(10 * time.Minute)
		home.set(status(503))
		for range 3 {
			if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != http.StatusOK {
				t.Errorf("%d, %v after %v and %d reads", r.status, r.err, r.took, reads.Load())
			}
			pass(2 * time.Minute)
		}
		close(end)
		synctest.Wait()
	})
}

// A list that was asked for before a 451 is as wrong as the one that led there, whenever it comes.
func TestOldListAfter451(t *testing.T) {
	inWorld(t, func(w *world) {
		home, one := w.serve(project, ok), w.serve(region1, ok)
		home.setList(first(after(1500*time.Millisecond, regions("300", region1)), after(100*time.Millisecond, status(500))))
		rt := w.transport()
		known(w, rt, project) // begins the slow read
		home.set(first(after(200*time.Millisecond, status(451)), status(503)))
		if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 451 {
			t.Fatalf("%d, %v", r.status, r.err)
		}
		pass(2 * time.Second)
		if r := w.post(context.Background(), rt, project, failover.Call{}); len(one.asked()) > 0 {
			t.Errorf("the old list is used: %d %+v", r.status, r.trail.Attempts)
		}
	})
}

// A pinned project whose allowed region dies while another is well: calls move there, as from any home.
func TestPinnedRegionDies(t *testing.T) {
	for _, hole := range []bool{true, false} {
		inWorld(t, func(w *world) {
			home, one, two := w.serve(project, status(451)), w.serve(region1, ok), w.serve(region2, ok)
			home.setList(regions("3600", region1, region2))
			rt := w.transport()
			known(w, rt, project)
			w.down(one, hole)
			var calls sync.WaitGroup
			var lost atomic.Int64
			for range 600 { // ten a second
				pass(100 * time.Millisecond)
				calls.Go(func() {
					if r := w.post(context.Background(), rt, project, failover.Call{Repeat: failover.Safe}); r.status != http.StatusOK {
						lost.Add(1)
					}
				})
			}
			calls.Wait()
			if dials := w.net.Dials(region1 + ":80"); lost.Load() > 0 || dials > 100 {
				t.Errorf("hole %t: %d calls lost, %d dials to the dead region, %d calls served by the other", hole, lost.Load(), dials, len(two.asked()))
			}
		})
	}
}

// A 451 of a region says nothing of the home that a single failure led away from.
func TestHomeIsNotLeftForA451OfAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		home, _, _ := w.serve(project, ok), w.serve(region1, status(451)), w.serve(region2, ok)
		home.setList(regions("86400", project, region1, region2))
		rt := w.transport()
		known(w, rt, project)
		home.set(first(status(500), ok))
		home.setList(regions("86400", project, region2))
		if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != http.StatusOK || r.body == "" {
			t.Fatal(r.status, r.err)
		}
		before := len(home.asked())
		for range 20 {
			pass(time.Hour)
			w.post(context.Background(), rt, project, failover.Call{})
		}
		if n := len(home.asked()) - before; n != 20 {
			t.Errorf("of 20 calls home, which is well, got %d", n)
		}
	})
}
