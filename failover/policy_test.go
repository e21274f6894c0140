package failover

import (
	"strings"
	"testing"
	"time"
)

const noDeadline = time.Duration(-1)

var (
	hostKinds = []hostKind{projectHost, cloudAPIHost, optedHost, foreignHost}
	repeats   = []Repeat{Safe, Keyed, Once}
)

func TestAttempts(t *testing.T) {
	for _, kind := range hostKinds {
		for _, repeat := range repeats {
			for _, off := range []bool{false, true} {
				for _, left := range []time.Duration{noDeadline, 0, time.Second, leastTime - 1, leastTime, 5 * time.Second, 10 * time.Second, time.Hour} {
					want := 3
					if off || kind == foreignHost || left >= 0 && left < 4900*time.Millisecond {
						want = 1
					}
					if got := apiPolicy(kind, &Call{Repeat: repeat}, off, left).attempts; got != want {
						t.Errorf("%v, %v, off %t, %v left: %d attempts, want %d", kind, repeat, off, left, got, want)
					}
				}
			}
		}
	}
	for kind, want := range map[hostKind]int{projectHost: 10, optedHost: 10, cloudAPIHost: 1, foreignHost: 1} {
		for _, off := range []bool{false, true} {
			if off {
				want = 1
			}
			if got := rtcPolicy(kind, off).attempts; got != want {
				t.Errorf("connection to a %v host, off %t: %d attempts, want %d", kind, off, got, want)
			}
		}
	}
}

// What does not depend on the attempts: who is patient for how long, who is overtaken, and where a 451 means "elsewhere".
func TestPolicies(t *testing.T) {
	const s = time.Second
	create := Call{Overtake: true} // Keyed, and its ids derive from the request id
	for _, test := range []struct {
		kind     hostKind
		call     Call
		left     time.Duration // when the attempt begins
		patience time.Duration // 0: all the time there is
		overtake bool
	}{
		{projectHost, Call{Repeat: Safe}, 30 * s, 5 * s, true},
		{projectHost, Call{Repeat: Safe}, 6 * s, 5 * s, true},
		{cloudAPIHost, Call{Repeat: Safe}, 30 * s, 5 * s, true},
		{optedHost, Call{Repeat: Safe}, 30 * s, 5 * s, true},
		{projectHost, Call{}, 30 * s, 10 * s, false},
		{projectHost, Call{}, 10 * s, 10 * s, false},
		{cloudAPIHost, Call{}, 30 * s, 10 * s, false},
		{projectHost, create, 30 * s, 10 * s, true},
		{projectHost, create, 20 * s, 10 * s, true},
		{projectHost, create, 16 * s, 8 * s, true},
		{projectHost, create, 10 * s, 5 * s, true},
		{projectHost, create, 9 * s, 5 * s, true},
		{projectHost, create, 0, 5 * s, true},
		{cloudAPIHost, create, 16 * s, 8 * s, true},
		{optedHost, Call{}, 30 * s, 0, false}, // a slow create could not be repeated there
		{optedHost, create, 30 * s, 0, false},
		{projectHost, Call{Repeat: Once}, 30 * s, 0, false},
		{projectHost, Call{Repeat: Once, Overtake: true}, 30 * s, 0, false},
		{cloudAPIHost, Call{Repeat: Once}, 30 * s, 0, false},
		{optedHost, Call{Repeat: Once}, 30 * s, 0, false},
		{projectHost, Call{Repeat: Once + 1}, 30 * s, 0, false}, // no class: as careful as can be
	} {
		p := apiPolicy(test.kind, &test.call, false, test.left)
		if got := p.patienceWith(test.left); got != test.patience || p.overtake != test.overtake {
			t.Errorf("%v %v (overtake %t), %v left: patience %v, overtaken %t, want %v, %t",
				test.kind, test.call.Repeat, test.call.Overtake, test.left, got, p.overtake, test.patience, test.overtake)
		}
		if p.limit != 0 || p.rtc {
			t.Errorf("%v %v: an API call has the limit of a connection", test.kind, test.call.Repeat)
		}
	}
	for kind, pinnable := range map[hostKind]bool{projectHost: true, optedHost: true, cloudAPIHost: false, foreignHost: false} {
		for _, off := range []bool{false, true} {
			if p := apiPolicy(kind, &Call{}, off, time.Second); p.pinnable != pinnable {
				t.Errorf("%v, off %t: pinnable %t", kind, off, p.pinnable)
			}
		}
		if p := rtcPolicy(kind, false); p.limit != 10*s || p.patienceWith(noDeadline) != 0 || p.overtake {
			t.Errorf("connection to a %v host: limit %v, patience %v, overtaken %t", kind, p.limit, p.patience, p.overtake)
		}
	}
}

func TestCallTime(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		kind  hostKind
		off   bool
		floor time.Duration
		want  time.Duration
	}{
		{projectHost, false, 0, 30 * s},
		{cloudAPIHost, false, 0, 30 * s},
		{optedHost, false, 0, 30 * s},
		{foreignHost, false, 0, 10 * s},
		{projectHost, true, 0, 10 * s},
		{projectHost, false, 32 * s, 32 * s},
		{projectHost, false, 17 * s, 30 * s},
		{foreignHost, false, 32 * s, 32 * s},
		{foreignHost, false, -5 * s, 10 * s},
	} {
		p := apiPolicy(test.kind, &Call{}, test.off, noDeadline)
		if got := p.callTime(test.floor); got != test.want {
			t.Errorf("%v, off %t, floor %v: %v, want %v", test.kind, test.off, test.floor, got, test.want)
		}
	}
}

func TestMayRepeat(t *testing.T) {
	for _, kind := range hostKinds {
		for _, repeat := range repeats {
			for _, effect := range []bool{false, true} {
				p := apiPolicy(kind, &Call{Repeat: repeat}, false, noDeadline)
				harmless := !effect || repeat == Safe || repeat == Keyed && (kind == projectHost || kind == cloudAPIHost)
				for made := 1; made <= 3; made++ {
					want := made < 3 && kind != foreignHost && harmless
					got, why := p.mayRepeat(made, verdict{effect: effect})
					if got != want || (why == "") != got {
						t.Errorf("%v, %v, may have taken effect %t, after %d attempts: %t, %q, want %t", kind, repeat, effect, made, got, why, want)
					}
				}
			}
		}
	}
	for made, want := range map[int]bool{1: true, 9: true, 10: false, 11: false} {
		if got, _ := rtcPolicy(projectHost, false).mayRepeat(made, verdict{effect: true}); got != want {
			t.Errorf("after %d connection attempts: another %t, want %t", made, got, want)
		}
	}
}

func TestNextWait(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	api, rtc := apiPolicy(projectHost, &Call{}, false, noDeadline), rtcPolicy(projectHost, false)
	for _, test := range []struct {
		name       string
		policy     policy
		made       int
		same       bool
		retryAfter time.Duration // negative: not stated
		left       time.Duration
		random     float64
		want       time.Duration // negative: no attempt may follow
	}{
		{"elsewhere", api, 1, false, -1, 10 * s, 0.5, 100 * ms},
		{"same host", api, 1, true, -1, 10 * s, 0.5, 100 * ms},
		{"after the second attempt", api, 2, true, -1, 10 * s, 0.5, 200 * ms},
		{"no deadline", api, 1, true, -1, noDeadline, 0.5, 100 * ms},
		{"at once", api, 1, true, -1, 10 * s, 0, 0},
		{"just in time", api, 1, true, -1, 100*ms + 1, 0.5, 100 * ms},
		{"too late", api, 1, true, -1, 100 * ms, 0.5, -1},
		{"no time at all", api, 1, true, -1, 0, 0, -1},

		{"asked to stay away, same host", api, 1, true, s, 10 * s, 0.5, s},
		{"asked to come back at once", api, 1, true, 0, 10 * s, 0.5, 0},
		{"asked for 2 s", api, 1, true, 2 * s, 10 * s, 0.5, 2 * s},
		{"asked for more than 2 s", api, 1, true, 2*s + 1, 10 * s, 0.5, -1},
		{"asked for 120 s", api, 1, true, 120 * s, 10 * s, 0.5, -1},
		{"asked for more than is left", api, 1, true, 2 * s, 2 * s, 0.5, -1},
		{"asked for 120 s, but elsewhere", api, 1, false, 120 * s, 10 * s, 0.5, 100 * ms},

		{"connection", rtc, 1, false, -1, 10 * s, 0.5, 0},
		{"connection, asked to stay away", rtc, 3, false, 120 * s, 10 * s, 0.5, 0},
		{"connection without a deadline", rtc, 3, false, -1, noDeadline, 0.5, 0},
	} {
		wait, ok, why := test.policy.nextWait(test.made, test.same, max(test.retryAfter, 0), test.retryAfter >= 0, test.left, test.random)
		if !ok {
			wait = -1
		}
		if wait != test.want || (why == "") != ok {
			t.Errorf("%s: wait %v, %q, want %v", test.name, wait, why, test.want)
		}
	}
	if _, _, why := api.nextWait(1, true, 2*time.Minute, true, time.Hour, 0); !strings.Contains(why, "2m0s") {
		t.Errorf("%q does not say how long the host asks to stay away", why)
	}
}

func TestRepeatNames(t *testing.T) {
	for repeat, want := range map[Repeat]string{Keyed: "keyed", Safe: "safe", Once: "once", Once + 1: "once"} {
		if got := repeat.String(); got != want {
			t.Errorf("Repeat(%d) is %q, want %q", repeat, got, want)
		}
	}
}
