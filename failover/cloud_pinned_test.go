package failover_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// A pinned project: the home region answers 451, and the list names the third region alone. The list that is cached named all.

func TestPinnedCloudProject(t *testing.T) {
	background := context.Background()
	for name, test := range map[string]struct {
		opts  []failover.Option
		off   bool // failover is off for the call
		given time.Duration
	}{
		"by default":          {},
		"failover off":        {opts: []failover.Option{failover.Off()}},
		"off for the call":    {off: true},
		"2 s left":            {given: 2 * time.Second},
		"no read ahead":       {opts: []failover.Option{failover.WithoutPrefetch()}},
		"off, and 2 s left":   {opts: []failover.Option{failover.Off()}, given: 2 * time.Second},
		"a patient caller's":  {given: time.Minute},
		"off, for the caller": {opts: []failover.Option{failover.Off()}, off: true},
	} {
		for _, cached := range []bool{true, false} {
			for kind, call := range map[string]func(*user, context.Context) told{"safe": (*user).rooms, "keyed": (*user).dispatch} {
				onCloud(t, setup{failover: test.opts}, func(u *user) {
					what := fmt.Sprintf("%s, %s, cached %t", name, kind, cached)
					if cached {
						u.good(1)
					}
					u.Pin(u.third)
					u.Forget()
					ctx := background
					if test.off {
						ctx = lkrpc.WithoutFailover(ctx)
					}
					if test.given > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, test.given)
						defer cancel()
					}
					if o := call(u, ctx); o.err != nil || o.took > 0 {
						t.Fatalf("%s: %v after %v", what, o.err, o.took)
					}
					if got := u.asked(); got != [3]int{1, 0, 1} || u.listRequests() != 1 {
						t.Fatalf("%s: requests %v, %d lists", what, got, u.listRequests())
					}
					refused, served := calls(u.home)[0], calls(u.third)[0]
					if refused.Status != http.StatusUnavailableForLegalReasons || served.Status != http.StatusOK || served.RequestID == "" ||
						refused.RequestID != served.RequestID || !bytes.Equal(refused.Body, served.Body) || refused.Path != served.Path ||
						kind == "keyed" && len(served.Body) == 0 {
						t.Errorf("%s: the requests differ:\n%+v\n%+v", what, refused, served)
					}

					for range 5 {
						if o := u.rooms(background); o.err != nil || o.took > 0 {
							t.Errorf("%s: a later call: %v after %v", what, o.err, o.took)
						}
					}
					if got := u.asked(); got != [3]int{1, 0, 6} {
						t.Errorf("%s: later calls: requests %v", what, got)
					}
				})
			}
		}
	}
}

// Without an allowed region the 451 surfaces, and nothing is asked twice.
func TestNoAllowedRegionInTheCloud(t *testing.T) {
	for name, test := range map[string]struct {
		list func(*user)
		want [3]int
	}{
		"an empty list":        {func(*user) {}, [3]int{1, 0, 0}},
		"a list of the home":   {func(u *user) { u.ListRegions(entries(u.home.URL())...) }, [3]int{1, 0, 0}},
		"a list of strangers":  {func(u *user) { u.ListRegions(entries("https://evil.example.com")...) }, [3]int{1, 0, 0}},
		"a list that is wrong": {func(u *user) { u.ListRegions(entries(u.home.URL(), u.second.URL(), u.third.URL())...) }, [3]int{1, 1, 1}},
		"a list that fails":    {listing(cloudtest.Status(500, nil, "")), [3]int{1, 0, 0}},
	} {
		for _, opts := range [][]failover.Option{nil, {failover.Off()}} {
			onCloud(t, setup{failover: opts}, func(u *user) {
				u.good(1)
				u.Pin()
				test.list(u)
				u.Forget()
				o := u.dispatch(context.Background())
				if e := o.failure(t); e.HTTPStatus != http.StatusUnavailableForLegalReasons || o.took > 0 || e.OutcomeUnknown {
					t.Errorf("%s: %v after %v", name, e, o.took)
				}
				if got := u.asked(); got != test.want {
					t.Errorf("%s: requests %v, want %v", name, got, test.want)
				}
			})
		}
	}
}

// The step after a 451 is no attempt: the allowed region still gets all three.
func TestAllowedRegionGetsAllAttempts(t *testing.T) {
	onCloud(t, setup{}, func(u *user) {
		u.good(1)
		u.Pin(u.third)
		u.third.Break(cloudtest.Status(http.StatusServiceUnavailable, nil, "maintenance"), cloudtest.On(cloudtest.API), cloudtest.Times(2))
		u.Forget()
		if o := u.dispatch(context.Background()); o.err != nil {
			t.Error(o.err)
		}
		if got := u.asked(); got[1] != 0 || got[2] != 3 {
			t.Errorf("requests %v, want three to the allowed region", got)
		}
	})
}

// When the project moves from one region to the next, calls go with it, and home again.
func TestPinMovesInTheCloud(t *testing.T) {
	onCloud(t, setup{}, func(u *user) {
		u.good(1)
		for _, to := range []*cloudtest.Host{u.third, u.second, u.home} {
			u.Pin(to)
			u.Forget()
			u.good(5)
			var ids []string
			for _, q := range calls(to) {
				if q.Status == http.StatusOK {
					ids = append(ids, q.RequestID)
				}
			}
			if slices.Sort(ids); len(slices.Compact(ids)) != 5 {
				t.Errorf("%d of 5 calls were answered by %s", len(ids), to)
			}
			if got := u.asked(); got[0]+got[1]+got[2] != 6 {
				t.Errorf("requests %v, want one 451 and five answers by %s", got, to)
			}
		}
	})
}
