package failover

import (
	"testing"
	"time"
)

// named makes an origin of these tests; "home" is the configured one.
func named(name string) origin { return origin{"https", name} }

// A call as health sees it.
type healthCall struct {
	after    time.Duration // since the call before
	starts   string        // where it must start; "home?" if it is a probe there
	blame    blame         // the gravest of its failures at that origin
	answered string        // by whom, "" if by nobody
}

// Each case is a row of calls, each over before the next begins.
func TestHealth(t *testing.T) {
	const (
		s      = time.Second
		m      = time.Minute
		calm   = blameNone
		second = blameSecond
		atOnce = blameAtOnce
		almost = 30*s - 1
	)
	for name, calls := range map[string][]healthCall{
		"nothing happens": {{0, "home", calm, "home"}, {m, "home", calm, "home"}},
		"at once after a failure of that kind": {
			{0, "home", atOnce, "a"}, {0, "a", calm, "a"}, {0, "a", calm, "a"}},
		"after any other only at the second in a row": {
			{0, "home", second, "a"}, {0, "home", second, "a"}, {0, "a", calm, "a"}},
		"not in a row": {
			{0, "home", second, "a"}, {0, "home", calm, "home"}, {0, "home", second, "a"}, {0, "home", calm, "home"}},
		"a failure of one kind, then of the other": {
			{0, "home", second, "a"}, {0, "home", atOnce, "b"}, {0, "b", calm, "b"}},
		"the row does not go on in the new place": {
			{0, "home", second, "a"}, {0, "home", second, "a"}, {0, "a", second, "b"}, {0, "a", calm, "a"}},
		"a row in the new place": {
			{0, "home", atOnce, "a"}, {0, "a", second, "b"}, {0, "a", second, "b"}, {0, "b", calm, "b"}},
		"a break of a reused connection does not count": {
			{0, "home", calm, "a"}, {0, "home", calm, "a"}, {0, "home", calm, "a"}, {0, "home", second, "a"}, {0, "home", calm, "home"}},
		"it failed, and was right the next time": {
			{0, "home", atOnce, "home"}, {0, "home", second, "home"}, {0, "home", second, "home"}, {0, "home", calm, "home"}},
		"a failure that happens everywhere never moves": {
			{0, "home", atOnce, ""}, {0, "home", atOnce, ""}, {0, "home", second, ""}, {0, "home", second, ""}, {0, "home", calm, "home"}},
		"nor does one everywhere bring back": {
			{0, "home", atOnce, "a"}, {0, "a", atOnce, ""}, {0, "a", calm, "a"}},

		"a probe after 30 s, and home is taken back": {
			{0, "home", atOnce, "a"}, {almost, "a", calm, "a"}, {1, "home?", calm, "home"}, {0, "home", calm, "home"}},
		"a probe that failed: 30 s doubling to 5 min": {
			{0, "home", atOnce, "a"},
			{30 * s, "home?", atOnce, "a"}, {60*s - 1, "a", calm, "a"},
			{1, "home?", atOnce, "a"}, {120*s - 1, "a", calm, "a"},
			{1, "home?", second, "a"}, {240*s - 1, "a", calm, "a"},
			{1, "home?", atOnce, "a"}, {300*s - 1, "a", calm, "a"},
			{1, "home?", second, "a"}, {300*s - 1, "a", calm, "a"},
			{1, "home?", calm, "home"}, {0, "home", calm, "home"}},
		"the next outage begins with 30 s again": {
			{0, "home", atOnce, "a"}, {30 * s, "home?", atOnce, "a"}, {60 * s, "home?", calm, "home"},
			{0, "home", atOnce, "a"}, {almost, "a", calm, "a"}, {1, "home?", calm, "home"}},
		"long after, one probe": {
			{0, "home", atOnce, "a"}, {time.Hour, "home?", atOnce, "a"}, {0, "a", calm, "a"}, {60*s - 1, "a", calm, "a"}, {1, "home?", calm, "home"}},
		"a probe that failed everywhere: again after the same time": {
			{0, "home", atOnce, "a"}, {30 * s, "home?", atOnce, ""}, {almost, "a", calm, "a"}, {1, "home?", calm, "home"}},
		"a probe over a reused connection that broke told nothing": {
			{0, "home", atOnce, "a"}, {30 * s, "home?", calm, "a"}, {almost, "a", calm, "a"}, {1, "home?", calm, "home"}},
		"one failure of any kind is enough for a probe": {
			{0, "home", atOnce, "a"}, {30 * s, "home?", second, "a"}, {0, "a", calm, "a"}},
		"a probe that another region answered for": {
			{0, "home", atOnce, "a"}, {30 * s, "home?", atOnce, "b"}, {0, "b", calm, "b"}, {60 * s, "home?", calm, "home"}},

		"the new place fails: on to the next, while the cool-down runs": {
			{0, "home", atOnce, "a"}, {10 * s, "a", atOnce, "b"}, {10 * s, "b", calm, "b"}, {10 * s, "home?", calm, "home"}},
		"the new place fails, and home answers": {
			{0, "home", atOnce, "a"}, {0, "a", atOnce, "home"}, {0, "home", calm, "home"}},
		"the new place fails once, and home answers: not worth moving": {
			{0, "home", atOnce, "a"}, {0, "a", second, "home"}, {0, "a", calm, "a"}},
	} {
		var h health
		now, home := noon, named("home")
		for i, c := range calls {
			now = now.Add(c.after)
			at, probe := h.start(home, now, true)
			starts := at.host
			if probe {
				starts += "?"
			}
			if starts != c.starts {
				t.Errorf("%s: call %d starts at %s, want %s", name, i+1, starts, c.starts)
				break
			}
			switch {
			case c.answered != "":
				h.report(home, at, named(c.answered), c.blame, probe, now)
			case probe:
				h.release(now)
			}
		}
	}
}

// Of all the calls that run while one probes, none else is sent to where it may fail; nor is one that could not be repeated.
func TestOneProbe(t *testing.T) {
	var h health
	home, now := named("home"), noon
	h.report(home, home, named("a"), blameAtOnce, false, now)
	now = now.Add(time.Hour)
	if at, probe := h.start(home, now, false); at != named("a") || probe {
		t.Errorf("a call that is not to be risked starts at %v, probe %t", at, probe)
	}
	if at, probe := h.start(home, now, true); at != home || !probe {
		t.Errorf("the first call after an hour starts at %v, probe %t", at, probe)
	}
	for range 10 {
		now = now.Add(time.Hour)
		if at, probe := h.start(home, now, true); at != named("a") || probe {
			t.Errorf("beside a probe, a call starts at %v, probe %t", at, probe)
		}
	}
	h.release(now)
	if at, probe := h.start(home, now, true); at != named("a") || probe {
		t.Errorf("right after a probe that told nothing, a call starts at %v, probe %t", at, probe)
	}
	if at, probe := h.start(home, now.Add(30*time.Second), true); at != home || !probe {
		t.Errorf("half a minute after it, a call starts at %v, probe %t", at, probe)
	}
}

// Calls that began before others moved on report late, and change nothing.
func TestLateReports(t *testing.T) {
	home, a, b := named("home"), named("a"), named("b")
	for name, test := range map[string]struct {
		late  func(h *health)
		start origin
	}{
		"home failed, another region answered": {func(h *health) { h.report(home, home, b, blameAtOnce, false, noon) }, a},
		"home failed in another way":           {func(h *health) { h.report(home, home, b, blameSecond, false, noon) }, a},
		"home failed twice in another way": {func(h *health) {
			h.report(home, home, b, blameSecond, false, noon)
			h.report(home, home, b, blameSecond, false, noon)
		}, a},
		"home was right":                 {func(h *health) { h.report(home, home, home, blameNone, false, noon) }, a},
		"home was right the second time": {func(h *health) { h.report(home, home, home, blameAtOnce, false, noon) }, a},
		"the new place fails once after such reports": {func(h *health) {
			h.report(home, home, b, blameSecond, false, noon)
			h.report(home, a, b, blameSecond, false, noon)
		}, a},
		"the new place fails for good": {func(h *health) { h.report(home, a, b, blameAtOnce, false, noon) }, b},
	} {
		var h health
		h.report(home, home, a, blameAtOnce, false, noon)
		test.late(&h)
		if at, probe := h.start(home, noon.Add(30*time.Second-1), true); at != test.start || probe {
			t.Errorf("%s: the next call starts at %v, probe %t, want %v", name, at, probe, test.start)
		}
	}
}

// After a 451 the allowed region is home until the list is stale, or another one that answers when it fails; the configured origin is
// not probed.
func TestPinnedHealth(t *testing.T) {
	home, a, b := named("home"), named("a"), named("b")
	var h health
	h.report(home, home, b, blameAtOnce, false, noon) // an outage that the 451 ends
	stale := noon.Add(time.Hour)
	h.pin(a, stale)
	starts := func(after time.Duration, want origin) {
		t.Helper()
		if at, probe := h.start(home, noon.Add(after), true); at != want || probe {
			t.Errorf("%v after a 451, a call starts at %v, probe %t", after, at, probe)
		}
		h.report(home, home, b, blameAtOnce, true, noon.Add(after)) // a probe from before
		h.release(noon.Add(after))
	}
	starts(0, a)
	starts(10*time.Minute, a)
	h.report(home, a, b, blameSecond, false, noon)
	h.report(home, a, a, blameNone, false, noon)
	h.report(home, a, b, blameSecond, false, noon)
	starts(11*time.Minute, a) // two failures of that kind, but not in a row
	h.report(home, a, b, blameAtOnce, false, noon)
	starts(12*time.Minute, b)
	h.report(home, a, home, blameAtOnce, false, noon) // late
	starts(time.Hour-1, b)
	var allowed health
	allowed.pin(a, stale)
	allowed.report(home, a, home, blameAtOnce, false, noon)
	if at, _ := allowed.start(home, noon, true); at != home {
		t.Errorf("when the configured origin has answered, a call starts at %v", at)
	}
	if at, probe := h.start(home, stale, true); at != home || probe {
		t.Errorf("when the list is stale, a call starts at %v, probe %t", at, probe)
	}
	h.report(home, home, a, blameAtOnce, false, stale)
	if at, probe := h.start(home, stale.Add(30*time.Second), true); at != home || !probe {
		t.Errorf("an outage later, half a minute on, a call starts at %v, probe %t", at, probe)
	}
}

func TestHealthOfManyCalls(t *testing.T) {
	var h health
	home := named("home")
	h.report(home, home, named("a"), blameAtOnce, false, noon)
	probes := make(chan bool, 100)
	for range cap(probes) {
		go func() {
			at, probe := h.start(home, noon.Add(time.Minute), true)
			h.report(home, at, named("a"), blameNone, probe, noon.Add(time.Minute))
			probes <- probe
		}()
	}
	n := 0
	for range cap(probes) {
		if <-probes {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of 100 calls at one moment probe, want 1", n)
	}
}
