package failover_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/twitchtv/twirp"
)

// The home region is up, and fails every call.

// outages are ways to fail, and the most that the first call pays.
var outages = map[string]struct {
	fault cloudtest.Fault
	most  time.Duration
}{
	"503":         {cloudtest.Status(http.StatusServiceUnavailable, nil, "maintenance"), 200 * time.Millisecond},
	"unavailable": {cloudtest.TwirpError(twirp.NewError(twirp.Unavailable, "draining")), 200 * time.Millisecond},
	"hang":        {cloudtest.Hang(), 5200 * time.Millisecond},
}

func TestOnlyTheFirstOfFiftyPays(t *testing.T) {
	for name, outage := range outages {
		onCloud(t, setup{}, func(u *user) {
			u.good(5)
			u.Forget()
			u.home.Break(outage.fault, cloudtest.On(cloudtest.API))
			for i := range 50 {
				o := u.rooms(context.Background())
				if o.err != nil || i == 0 && o.took > outage.most || i > 0 && o.took > 0 {
					t.Errorf("%s: call %d: %v after %v", name, i+1, o.err, o.took)
				}
			}
			if got := u.asked(); got != [3]int{1, 50, 0} {
				t.Errorf("%s: requests %v", name, got)
			}
		})
	}
}

// While the outage lasts, the home region gets one call for each cool-down: 30 s, doubling to 5 min. When it recovers, the next
// such call takes all the others back.
func TestProbesOfTheHome(t *testing.T) {
	for name, outage := range outages {
		onCloud(t, setup{}, func(u *user) {
			u.good(5)
			u.Forget()
			fault := u.home.Break(outage.fault, cloudtest.On(cloudtest.API))
			begin := time.Now()
			for time.Since(begin) < 20*time.Minute {
				slow := 0
				for _, o := range u.atOnce(3) {
					if o.took > outage.most || o.err != nil {
						t.Errorf("%s: %v after %v", name, o.err, o.took)
					}
					if o.took > 0 {
						slow++
					}
				}
				if slow > 1 && time.Since(begin) > 10*time.Second {
					t.Errorf("%s: %d of three calls met the dead region", name, slow)
				}
				pass(time.Second)
			}
			var last time.Time
			coolDown := 30 * time.Second
			probes := 0
			for _, q := range calls(u.home) {
				if q.Time.Sub(begin) < 10*time.Second { // the calls that met the outage together
					last = q.Time
					continue
				}
				if gap := q.Time.Sub(last); gap < coolDown {
					t.Errorf("%s: probe %d came %v after the one before, want at least %v", name, probes+1, gap, coolDown)
				}
				last, coolDown = q.Time, min(2*coolDown, 5*time.Minute)
				probes++
			}
			if probes < 5 || probes > 6 {
				t.Errorf("%s: %d probes in 20 min, want 5 or 6", name, probes)
			}

			fault.Clear()
			pass(5 * time.Minute)
			u.good(1)
			u.Forget()
			for range 10 {
				if o := u.rooms(context.Background()); o.err != nil || o.took > 0 {
					t.Errorf("%s: after the outage: %v after %v", name, o.err, o.took)
				}
			}
			if got := u.asked(); got != [3]int{10, 0, 0} {
				t.Errorf("%s: after the outage: requests %v", name, got)
			}
		})
	}
}

// What every region answers is not the fault of one: no call moves.
func TestFailureOfEveryRegionMovesNothing(t *testing.T) {
	for _, code := range []int{500, 503} {
		onCloud(t, setup{}, func(u *user) {
			u.good(5)
			for _, h := range u.Regions() {
				h.Break(cloudtest.Status(code, nil, "a poisoned request"), cloudtest.On("AgentDispatchService/"))
			}
			for range 5 {
				o := u.dispatch(context.Background())
				if e := o.failure(t); e.HTTPStatus != code || len(e.Attempts) != 3 {
					t.Errorf("%v, want a %d of three regions", e, code)
				}
			}
			u.Forget()
			u.good(10)
			if got := u.asked(); got != [3]int{10, 0, 0} {
				t.Errorf("after a %d everywhere: requests %v", code, got)
			}
		})
	}
}
