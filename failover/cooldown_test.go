package failover_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// Later calls of an outage do not pay for it again.

// outage is a project with a region, whose home has begun to fail.
type outage struct {
	*world
	rt        *failover.Transport
	home, one *site
}

func inOutage(t *testing.T, test func(o *outage), opts ...failover.Option) {
	t.Helper()
	inWorld(t, func(w *world) {
		o := &outage{world: w, home: w.serve(project, ok), one: w.serve(region1, ok)}
		o.home.setList(regions("86400", region1))
		o.rt = w.transport(opts...)
		for range 5 {
			known(w, o.rt, project)
		}
		test(o)
	})
}

// call makes a call that must be answered, and returns how many requests home and the region saw for it.
func (o *outage) call(call failover.Call) (home, one int, took time.Duration) {
	o.t.Helper()
	before := requests(o.home, o.one)
	r := o.post(context.Background(), o.rt, project, call)
	if r.status != 200 {
		o.t.Errorf("%d, %v", r.status, r.err)
	}
	after := requests(o.home, o.one)
	return after[0] - before[0], after[1] - before[1], r.took
}

func TestOnlyTheFirstCallPays(t *testing.T) {
	for name, fail := range map[string]struct {
		with func(o *outage)
		most time.Duration
	}{
		"503":        {func(o *outage) { o.home.set(status(503)) }, 200 * time.Millisecond},
		"522":        {func(o *outage) { o.home.set(status(522)) }, 200 * time.Millisecond},
		"hang":       {func(o *outage) { o.home.set(hang) }, 5200 * time.Millisecond},
		"refused":    {func(o *outage) { o.down(o.home, false) }, 200 * time.Millisecond},
		"black hole": {func(o *outage) { o.down(o.home, true) }, 3200 * time.Millisecond},
	} {
		inOutage(t, func(o *outage) {
			fail.with(o)
			dials := o.net.Dials(project + ":80")
			before := len(o.home.asked())
			for i := range 50 {
				_, _, took := o.call(failover.Call{Repeat: failover.Safe})
				if i == 0 && took > fail.most || i > 0 && took > 0 {
					t.Errorf("%s: call %d took %v", name, i+1, took)
				}
			}
			if n, d := len(o.home.asked())-before, o.net.Dials(project+":80")-dials; n > 1 || d > 1 || n+d == 0 {
				t.Errorf("%s: home saw %d requests and %d dials of 50 calls, want one", name, n, d)
			}
		})
	}
}

// What is not worth moving for.
func TestWhatMovesNothing(t *testing.T) {
	safe := failover.Call{Repeat: failover.Safe}
	for name, happen := range map[string]func(o *outage){
		"one 500": func(o *outage) { o.home.set(first(status(500), ok)); o.call(safe) },
		"500s with a success between": func(o *outage) {
			o.home.set(first(status(500), ok, status(500), ok))
			o.call(safe)
			o.call(safe)
			o.call(safe)
		},
		"a reset of a kept-alive one":   func(o *outage) { o.home.set(first(hangUp, ok)); o.call(safe) },
		"two resets of kept-alive ones": func(o *outage) { o.home.set(first(hangUp, ok, hangUp, ok)); o.call(safe); o.call(safe); o.call(safe) },
		"a slow answer that won after all": func(o *outage) {
			o.home.set(first(after(6*time.Second, ok), ok))
			o.one.set(first(hang, ok))
			o.call(safe)
		},
		"a 404 of the region after the 503": func(o *outage) {
			o.home.set(status(404))
			o.post(context.Background(), o.rt, project, safe)
			o.home.set(ok)
		},
		"a 500 in every region": func(o *outage) {
			o.home.set(status(500))
			o.one.set(status(500))
			for range 5 {
				if r := o.post(context.Background(), o.rt, project, safe); r.status != 500 {
					t.Errorf("%d, %v", r.status, r.err)
				}
			}
			o.home.set(ok)
			o.one.set(ok)
		},
		"a 503 in every region": func(o *outage) {
			o.home.set(status(503))
			o.one.set(status(503))
			for range 5 {
				o.post(context.Background(), o.rt, project, safe)
			}
			o.home.set(ok)
			o.one.set(ok)
		},
		"another project's outage": func(o *outage) {
			o.serve("other.livekit.cloud", status(503)).setList(regions("60", region1))
			o.post(context.Background(), o.rt, "other.livekit.cloud", safe)
		},
	} {
		inOutage(t, func(o *outage) {
			happen(o)
			for range 5 {
				if home, one, _ := o.call(safe); home != 1 || one != 0 {
					t.Errorf("%s: a later call asked home %d times and the region %d times", name, home, one)
				}
			}
		})
	}
}

// A 500 moves calls at the second in a row; so does a broken answer.
func TestSecondFailureMoves(t *testing.T) {
	truncated := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobuf)
		w.Header().Set("Content-Length", "100")
		w.Write([]byte("half"))
	}
	for name, failing := range map[string]http.HandlerFunc{"500": status(500), "501": status(501), "a truncated answer": truncated} {
		inOutage(t, func(o *outage) {
			o.home.set(failing)
			for i, want := range []int{1, 1, 0, 0} {
				if home, _, _ := o.call(failover.Call{}); home != want {
					t.Errorf("%s: call %d asked home %d times, want %d", name, i+1, home, want)
				}
			}
		})
	}
}

// One call for each cool-down tries the configured host for all, and takes them back when it answers.
func TestProbes(t *testing.T) {
	inOutage(t, func(o *outage) {
		o.home.set(status(503))
		o.call(failover.Call{})
		start := time.Now()
		var probes []time.Duration
		before := len(o.home.asked())
		for time.Since(start) < 25*time.Minute {
			pass(3 * time.Second)
			for _, r := range o.atOnce(3, o.rt, project, failover.Call{}) {
				if r.status != 200 {
					t.Fatalf("%d, %v", r.status, r.err)
				}
			}
		}
		for _, a := range o.home.asked()[before:] {
			probes = append(probes, a.at.Sub(start).Round(time.Second))
		}
		want := []time.Duration{30 * time.Second} // then 60 s, 120 s, 240 s, and 5 min each, from the next call on
		for _, gap := range []time.Duration{60, 120, 240, 300, 300, 300} {
			want = append(want, want[len(want)-1]+gap*time.Second)
		}
		if len(probes) < 6 || len(probes) > len(want) {
			t.Fatalf("probes at %v, want about %v", probes, want)
		}
		for i, at := range probes {
			if off := at - want[i]; off < 0 || off > 20*time.Second {
				t.Errorf("probes at %v, want about %v", probes, want)
				break
			}
		}

		o.home.set(ok)
		pass(5 * time.Minute)
		o.call(failover.Call{})
		for range 5 {
			if home, one, _ := o.call(failover.Call{}); home != 1 || one != 0 {
				t.Errorf("after the outage a call asked home %d times and the region %d times", home, one)
			}
		}
		// A new outage begins with the first cool-down.
		o.home.set(status(503))
		o.call(failover.Call{})
		pass(31 * time.Second)
		if home, _, _ := o.call(failover.Call{}); home != 1 {
			t.Error("no probe after the first cool-down of a new outage")
		}
	})
}

// A probe that hangs holds up only its own call; the others stay in the region.
func TestHangingProbe(t *testing.T) {
	inOutage(t, func(o *outage) {
		o.home.set(hang)
		o.call(failover.Call{Repeat: failover.Safe})
		pass(31 * time.Second)
		before := len(o.home.asked())
		slow := 0
		for _, r := range o.atOnce(20, o.rt, project, failover.Call{Repeat: failover.Safe}) {
			if r.status != 200 {
				t.Errorf("%d, %v", r.status, r.err)
			}
			if r.took > 0 {
				slow++
			}
		}
		if n := len(o.home.asked()) - before; n != 1 || slow != 1 {
			t.Errorf("%d probes, %d slow calls, want one", n, slow)
		}
	})
}

// A probe that tells nothing, since its connection broke or its call was cancelled, is a probe all the same.
func TestProbeWithoutAnAnswer(t *testing.T) {
	for name, probe := range map[string]func(o *outage){
		"broken": func(o *outage) { o.home.set(hangUp); o.call(failover.Call{}) },
		"cancelled": func(o *outage) {
			o.home.set(hang)
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			o.post(ctx, o.rt, project, failover.Call{})
		},
		"pinned": func(o *outage) {
			o.home.setList(regions("1", region1))
			o.home.set(status(451))
			o.call(failover.Call{})
			pass(2 * time.Second)
			o.home.set(status(503))
			o.call(failover.Call{})
		},
	} {
		inOutage(t, func(o *outage) {
			o.home.set(status(503))
			o.call(failover.Call{})
			pass(31 * time.Second)
			before := len(o.home.asked())
			o.call(failover.Call{Repeat: failover.Once}) // not risked
			if n := len(o.home.asked()) - before; n != 0 {
				t.Errorf("%s: a Once call was the probe", name)
			}
			probe(o)
			before = len(o.home.asked())
			for range 10 {
				o.call(failover.Call{})
			}
			if n := len(o.home.asked()) - before; n != 0 {
				t.Errorf("%s: %d more probes at once", name, n)
			}
			o.home.set(ok)
			pass(6 * time.Minute)
			o.call(failover.Call{})
			if home, one, _ := o.call(failover.Call{}); home != 1 || one != 0 {
				t.Errorf("%s: home was not taken back", name)
			}
		})
	}
}

// When the region that took over fails in its turn, calls move on, and home again at last.
func TestMovesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		home, one, two := w.serve(project, ok), w.serve(region1, ok), w.serve(region2, ok)
		home.setList(regions("86400", region1, region2))
		rt := w.transport()
		known(w, rt, project)
		for _, step := range []struct {
			change func()
			want   []int // requests of two calls
		}{
			{func() { home.set(status(503)) }, []int{1, 2, 0}},
			{func() { one.set(status(503)) }, []int{0, 1, 2}},
			{func() { home.set(ok); two.set(status(503)) }, []int{2, 1, 1}},
			{func() {}, []int{2, 0, 0}},
		} {
			step.change()
			before := requests(home, one, two)
			for range 2 {
				if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 {
					t.Errorf("%d, %v", r.status, r.err)
				}
			}
			got := requests(home, one, two)
			for i := range got {
				got[i] -= before[i]
			}
			if !slices.Equal(got, step.want) {
				t.Errorf("requests %v, want %v", got, step.want)
			}
		}
	})
}

// Calls with too little time for a repeat, and Once calls, do not risk a probe. When the region that serves them fails in its turn
// they would be lost there for good, while home has long been well.
func TestRegionThatFailsCallsOfOneAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		fail http.HandlerFunc
		call failover.Call
		time time.Duration
	}{
		"503, short calls":  {status(503), failover.Call{Repeat: failover.Safe}, 3 * time.Second},
		"hang, short calls": {hang, failover.Call{Repeat: failover.Safe}, 3 * time.Second},
		"hang, Once":        {hang, failover.Call{Repeat: failover.Once}, 10 * time.Second},
	} {
		inOutage(t, func(o *outage) {
			o.home.set(status(503))
			o.call(failover.Call{})
			o.home.set(ok)
			pass(time.Minute)
			before := len(o.home.asked())
			o.post(within(o.world, c.time), o.rt, project, c.call)
			if n := len(o.home.asked()) - before; n != 0 {
				t.Errorf("%s: home was probed while the region answers", name)
			}
			o.one.set(c.fail)
			failed := 0
			for range 10 {
				if r := o.post(within(o.world, c.time), o.rt, project, c.call); r.status != 200 {
					failed++
				}
			}
			if failed != 1 {
				t.Errorf("%s: %d of 10 calls failed, want the first", name, failed)
			}
		})
	}
}
