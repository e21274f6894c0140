package failover_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// 451: the project lives in other regions, and a fresh list names them.

func TestPinnedProject(t *testing.T) {
	offCall := failover.Call{Repeat: failover.Once, Off: true}
	tests := []struct {
		name  string
		call  failover.Call
		opts  []failover.Option
		given time.Duration // the caller's deadline
	}{
		{"safe", classes["safe"], nil, 0},
		{"keyed", classes["keyed"], nil, 0},
		{"create", create, nil, 0},
		{"once", classes["once"], nil, 0},
		{"off", classes["keyed"], []failover.Option{failover.Off()}, 0},
		{"off for the call", offCall, nil, 0},
		{"2 s left", classes["keyed"], nil, 2 * time.Second},
		{"without reads ahead", classes["keyed"], []failover.Option{failover.WithoutPrefetch()}, 0},
	}
	for _, test := range tests {
		for _, stale := range []bool{false, true} { // there is a list already, which still names another region
			inWorld(t, func(w *world) {
				home, one, two := w.serve(project, ok), w.serve(region1, status(451)), w.serve(region2, ok)
				home.setList(regions("300", region1))
				rt := w.transport(test.opts...)
				if stale {
					known(w, rt, project)
				}
				reads := len(home.listed())
				home.set(status(451))
				home.setList(regions("300", region2))
				before := requests(home, one, two)
				ctx := context.Background()
				if test.given > 0 {
					ctx = within(w, test.given)
				}
				r := w.post(ctx, rt, project, test.call)
				if r.status != 200 || r.body != "from "+region2 || r.took > 0 {
					t.Fatalf("%s: %d %q, %v after %v", test.name, r.status, r.body, r.err, r.took)
				}
				if got := requests(home, one, two); got[0] != before[0]+1 || got[1] != before[1] || got[2] != before[2]+1 {
					t.Errorf("%s, stale %t: requests %v after %v", test.name, stale, got, before)
				}
				if n := len(home.listed()) - reads; n != 1 {
					t.Errorf("%s, stale %t: %d region list requests, want 1", test.name, stale, n)
				}
				refused, served := home.asked()[before[0]], two.asked()[0]
				if refused.id != served.id || refused.body != served.body || served.body != "request" {
					t.Errorf("%s: the requests differ: %q %q, %q %q", test.name, refused.id, refused.body, served.id, served.body)
				}
				if r.trail.Pinned != 1 || len(r.trail.Attempts) != 2 || r.trail.Attempts[1].Number != 1 || r.trail.Attempts[1].Wait != 0 {
					t.Errorf("%s: trail %+v", test.name, r.trail)
				}

				// Later calls start in the allowed region, until the list is stale; then the configured host is asked again.
				before = requests(home, one, two)
				for range 5 {
					if r := w.post(context.Background(), rt, project, test.call); r.status != 200 || r.body != "from "+region2 {
						t.Errorf("%s: a later call: %d %q, %v", test.name, r.status, r.body, r.err)
					}
				}
				if got := requests(home, one, two); got[0] != before[0] || got[2] != before[2]+5 {
					t.Errorf("%s: requests of later calls %v after %v", test.name, got, before)
				}
				pass(301 * time.Second)
				if r := w.post(context.Background(), rt, project, test.call); r.status != 200 || len(home.asked()) != before[0]+1 {
					t.Errorf("%s: with a stale list: %d, %v; home was not asked", test.name, r.status, r.err)
				}
			})
		}
	}
}

// The steps after a 451 come on top of the attempts, and there are two of them.
func TestStepsAfter451(t *testing.T) {
	tests := []struct {
		name                   string
		home, one, two, three  int
		opts                   []failover.Option
		status                 int
		requests               []int
		pinned, attempts, last int // last: the Number of the last attempt
	}{
		{"no allowed region", 451, 451, 451, 451, nil, 451, []int{1, 1, 1, 0}, 2, 3, 1},
		{"the second step succeeds", 451, 451, 200, 200, nil, 200, []int{1, 1, 1, 0}, 2, 3, 1},
		{"a failure after a step", 451, 503, 200, 200, nil, 200, []int{1, 1, 1, 0}, 1, 3, 2},
		{"failures after a step", 451, 503, 500, 503, nil, 503, []int{1, 1, 1, 1}, 1, 4, 3},
		{"a step after a failure", 503, 451, 200, 200, nil, 200, []int{1, 1, 1, 0}, 1, 3, 2},
		{"two steps and two failures", 451, 503, 451, 503, nil, 503, []int{1, 1, 1, 2}, 2, 5, 3},
		{"off, a failure after a step", 451, 503, 200, 200, []failover.Option{failover.Off()}, 503, []int{1, 1, 0, 0}, 1, 2, 1},
	}
	for _, test := range tests {
		inWorld(t, func(w *world) {
			home := w.serve(project, status(test.home))
			sites := []*site{home, w.serve(region1, status(test.one)), w.serve(region2, status(test.two)), w.serve(region3, status(test.three))}
			for i, code := range []int{test.home, test.one, test.two, test.three} {
				if code == 200 {
					sites[i].set(ok)
				}
			}
			home.setList(regions("300", region1, region2, region3))
			r := w.post(context.Background(), w.transport(test.opts...), project, failover.Call{})
			if r.status != test.status {
				t.Errorf("%s: %d, %v, want %d", test.name, r.status, r.err, test.status)
			}
			if got := requests(sites...); !slices.Equal(got, test.requests) {
				t.Errorf("%s: requests %v, want %v", test.name, got, test.requests)
			}
			if r.trail.Pinned != test.pinned || len(r.trail.Attempts) != test.attempts || r.trail.Attempts[test.attempts-1].Number != test.last {
				t.Errorf("%s: %+v", test.name, r.trail)
			}
		})
	}
}

// Without an allowed region that is known, the 451 stands.
func TestNoAllowedRegion(t *testing.T) {
	for name, list := range map[string]func(w *world) *site{
		"an empty list":       func(w *world) *site { s := w.serve(project, status(451)); s.setList(regions("300")); return s },
		"a list of itself":    func(w *world) *site { s := w.serve(project, status(451)); s.setList(regions("300", project)); return s },
		"no list":             func(w *world) *site { return w.serve(project, status(451)) },
		"a list that fails":   func(w *world) *site { s := w.serve(project, status(451)); s.setList(status(500)); return s },
		"a list of strangers": func(w *world) *site { s := w.serve(project, status(451)); s.setList(regions("300", own)); return s },
	} {
		for class, call := range classes {
			inWorld(t, func(w *world) {
				home := list(w)
				r := w.post(context.Background(), w.transport(), project, call)
				if r.status != 451 || r.took > 0 || len(home.asked()) != 1 || len(home.listed()) != 1 {
					t.Errorf("%s, %s: %d, %v after %v; %d requests, %d lists", name, class, r.status, r.err, r.took, len(home.asked()), len(home.listed()))
				}
				if r.trail.OutcomeUnknown || r.trail.Pinned != 0 {
					t.Errorf("%s, %s: %+v", name, class, r.trail)
				}
			})
		}
	}
}

// On other hosts a 451 is an answer like any other 4xx.
func Test451Elsewhere(t *testing.T) {
	for _, host := range []string{cloud, own} {
		inWorld(t, func(w *world) {
			s := w.serve(host, status(451))
			r := w.post(context.Background(), w.transport(), host, failover.Call{})
			if r.status != 451 || len(s.asked()) != 1 || len(s.listed()) != 0 {
				t.Errorf("%s: %d, %v; %d requests, %d lists", host, r.status, r.err, len(s.asked()), len(s.listed()))
			}
		})
	}
}

// Those who run their own regions may pin as well: by a list, or with fixed origins.
func TestPinnedOnOnesOwnHosts(t *testing.T) {
	const other = "eu.sfu.example.com"
	for name, opts := range map[string][]failover.Option{
		"Hosts":   {failover.Hosts(own, "*."+own)},
		"Origins": {failover.Origins("http://"+own, "http://"+other)},
	} {
		inWorld(t, func(w *world) {
			home, two := w.serve(own, status(451)), w.serve(other, ok)
			home.setList(regions("300", other))
			rt := w.transport(opts...)
			for range 5 {
				if r := w.post(context.Background(), rt, own, failover.Call{Repeat: failover.Once}); r.status != 200 || r.took > 0 {
					t.Errorf("%s: %d, %v after %v", name, r.status, r.err, r.took)
				}
			}
			if got := requests(home, two); got[0] != 1 || got[1] != 5 {
				t.Errorf("%s: requests %v, want 1 and 5: later calls start in the allowed region", name, got)
			}
		})
	}
}

// Many calls that meet the 451 at once share the new list.
func TestPinnedTogether(t *testing.T) {
	for _, age := range []string{"0", "60"} {
		inWorld(t, func(w *world) {
			home, one := w.serve(project, after(20*time.Millisecond, status(451))), w.serve(region1, after(20*time.Millisecond, ok))
			home.setList(after(30*time.Millisecond, regions(age, region1)))
			rt := w.transport()
			for _, r := range w.atOnce(100, rt, project, failover.Call{}) {
				if r.status != 200 || r.body != "from "+region1 {
					t.Errorf("max-age %s: %d %q, %v", age, r.status, r.body, r.err)
				}
			}
			if n := len(home.listed()); n > 2 {
				t.Errorf("max-age %s: %d region list requests, want at most 2", age, n)
			}
			if got := requests(home, one); got[0] != 100 || got[1] != 100 {
				t.Errorf("max-age %s: requests %v", age, got)
			}
		})
	}
}

// When the pin moves on, the region that was allowed says so, and calls move with it, back to the configured host too.
func TestPinMoves(t *testing.T) {
	inWorld(t, func(w *world) {
		home, one, two := w.serve(project, status(451)), w.serve(region1, ok), w.serve(region2, ok)
		home.setList(regions("300", region1))
		rt := w.transport()
		call := func(want string) {
			t.Helper()
			if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 || r.body != "from "+want {
				t.Errorf("%d %q, %v, want it from %s", r.status, r.body, r.err, want)
			}
		}
		call(region1)
		one.set(status(451))
		home.setList(regions("300", region2))
		call(region2)
		call(region2)
		two.set(status(451))
		home.set(ok)
		home.setList(regions("300", project))
		call(project)
		before := requests(home, one, two)
		for range 5 {
			call(project)
		}
		if got := requests(home, one, two); got[0] != before[0]+5 || got[1] != before[1] || got[2] != before[2] {
			t.Errorf("requests %v after %v: the regions are no longer allowed", got, before)
		}
	})
}
