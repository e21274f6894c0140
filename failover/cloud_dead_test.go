package failover_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/twitchtv/twirp"
)

// deaths are ways for a region to go as a whole, and the most that a call which meets one takes.
var deaths = map[string]struct {
	of   func(*cloudtest.Host)
	most time.Duration
}{
	"refused":    {func(h *cloudtest.Host) { h.Refuse() }, 200 * time.Millisecond},
	"black hole": {func(h *cloudtest.Host) { h.BlackHole() }, 3200 * time.Millisecond},
	"no name":    {func(h *cloudtest.Host) { h.Refuse().Clear(); h.Unresolve() }, 200 * time.Millisecond},
}

// The home region dies, and with it the region list, which was read ahead of need.
func TestDeadHome(t *testing.T) {
	for name, death := range deaths {
		for kind, call := range map[string]func(*user, context.Context) told{"safe": (*user).rooms, "keyed": (*user).dispatch} {
			for _, before := range []int{1, 5} {
				onCloud(t, setup{}, func(u *user) {
					u.good(before)
					lists, asked := u.listRequests(), u.asked()
					death.of(u.home)
					synctest.Wait() // what was connected is known to be lost
					if o := call(u, context.Background()); o.err != nil || o.took > death.most {
						t.Errorf("%s, %s after %d calls: %v after %v", name, kind, before, o.err, o.took)
					}
					for range 5 {
						if o := call(u, context.Background()); o.err != nil || o.took > 0 {
							t.Errorf("%s, %s: a later call: %v after %v", name, kind, o.err, o.took)
						}
					}
					if got := u.since(asked); got != [3]int{0, 6, 0} {
						t.Errorf("%s, %s: requests %v", name, kind, got)
					}
					if n := u.listRequests() - lists; lists != 1 || n != 0 {
						t.Errorf("%s, %s: %d region list requests before, %d after", name, kind, lists, n)
					}
				})
			}
		}
	}
}

// The route to the home region is lost: connections that exist fall silent, new ones do not come about. The call that was sent
// into the silence is served by the ping of HTTP/2; since that was a break of a reused connection, one more may meet the dial.
func TestHomeFallsSilent(t *testing.T) {
	onCloud(t, setup{}, func(u *user) {
		u.good(5)
		asked := u.asked()
		u.home.Freeze()
		u.home.BlackHole()
		slow := 0
		for range 10 {
			o := u.rooms(context.Background())
			if o.err != nil || o.took > 5200*time.Millisecond {
				t.Errorf("%v after %v", o.err, o.took)
			}
			if o.took > 0 {
				slow++
			}
		}
		if got := u.since(asked); got != [3]int{0, 10, 0} || slow == 0 || slow > 2 {
			t.Errorf("requests %v, %d slow calls", got, slow)
		}
	})
}

// A dead home over sockets, where the process that served it has ended.
func TestDeadHomeOverSockets(t *testing.T) {
	u := newUser(t, setup{})
	for range 5 {
		if o := u.rooms(t.Context()); o.err != nil {
			t.Fatal(o.err)
		}
	}
	<-u.lists.read
	asked := u.asked()
	u.home.Refuse()
	if err := u.home.AwaitDisconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if o := u.dispatch(t.Context()); o.err != nil {
			t.Error(o.err)
		}
	}
	if got := u.since(asked); got != [3]int{0, 5, 0} {
		t.Errorf("requests %v", got)
	}
}

// A list that has been stale for a while is better than none.
func TestDeadHomeAfterASilence(t *testing.T) {
	onCloud(t, setup{}, func(u *user) {
		u.good(1)
		pass(50 * time.Minute)
		u.home.Refuse()
		if o := u.rooms(context.Background()); o.err != nil || o.took > 200*time.Millisecond {
			t.Errorf("%v after %v", o.err, o.took)
		}
	})
}

// Two of three regions die.
func TestTwoDeadRegions(t *testing.T) {
	for name, death := range deaths {
		onCloud(t, setup{}, func(u *user) {
			u.good(5)
			asked := u.asked()
			death.of(u.home)
			death.of(u.second)
			synctest.Wait()
			if o := u.rooms(context.Background()); o.err != nil || o.took > 2*death.most+200*time.Millisecond {
				t.Errorf("%s: %v after %v", name, o.err, o.took)
			}
			if o := u.rooms(context.Background()); o.err != nil || o.took > 0 {
				t.Errorf("%s: a later call: %v after %v", name, o.err, o.took)
			}
			if got := u.since(asked); got != [3]int{0, 0, 2} {
				t.Errorf("%s: requests %v", name, got)
			}
		})
	}
}

// Who wants no read ahead of need has no list when the home region is dead.
func TestDeadHomeWithoutPrefetch(t *testing.T) {
	onCloud(t, setup{failover: []failover.Option{failover.WithoutPrefetch()}}, func(u *user) {
		u.good(5)
		asked := u.asked()
		u.home.Refuse()
		o := u.rooms(context.Background())
		if e := o.failure(t); e.Code() != twirp.Unavailable || len(e.Attempts) != 3 || u.since(asked) != [3]int{} || u.listRequests() != 0 {
			t.Errorf("%v; requests %v, %d lists", e, u.since(asked), u.listRequests())
		}
	})
}

// What happens once says nothing about a region: no later call moves.
func TestOneFailureMovesNothing(t *testing.T) {
	internal := cloudtest.TwirpError(twirp.InternalError("deadlock"))
	for name, fault := range map[string]cloudtest.Fault{
		"a reset connection": cloudtest.Drop(),
		"a reset stream":     cloudtest.Reset(),
		"a lost reply":       cloudtest.After(cloudtest.Drop()),
		"a 500":              internal,
		"a bare 500":         cloudtest.Status(http.StatusInternalServerError, nil, "oops"),
	} {
		for proto, opts := range map[string][]cloudtest.Option{"h2": nil, "h1": {cloudtest.HTTP1()}} {
			onCloud(t, setup{cloud: opts}, func(u *user) {
				u.good(5)
				b := u.home.Break(fault, cloudtest.On(cloudtest.API), cloudtest.Times(1))
				u.good(1)
				if b.Hits() != 1 {
					t.Fatalf("%s, %s: %d hits", name, proto, b.Hits())
				}
				before := u.asked()
				u.good(10)
				if got := u.since(before); got != [3]int{10, 0, 0} {
					t.Errorf("%s, %s: requests of 10 later calls: %v", name, proto, got)
				}
			})
		}
	}
	onCloud(t, setup{}, func(u *user) { // the connection ends while nobody uses it
		u.good(5)
		u.home.Refuse().Clear()
		u.good(1) // may meet the end
		before := u.asked()
		u.good(10)
		if got := u.since(before); got != [3]int{10, 0, 0} {
			t.Errorf("requests of 10 calls after a silent end: %v", got)
		}
	})
}
