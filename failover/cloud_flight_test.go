package failover_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// However many calls fail at one time, they share the region list, also one that may not be kept.
func TestManyFailingCallsReadOneList(t *testing.T) {
	down := cloudtest.Status(http.StatusServiceUnavailable, nil, "maintenance")
	many := func(t *testing.T, u *user, age string, least int) {
		before := u.listRequests()
		u.home.Break(down, cloudtest.On(cloudtest.API))
		for _, o := range u.atOnce(100) {
			if o.err != nil {
				t.Errorf("max-age %s: %v", age, o.err)
			}
		}
		if n := u.listRequests() - before; n < least || n > 2 {
			t.Errorf("max-age %s: %d region list requests, want %d to 2", age, n, least)
		}
	}
	for _, age := range []string{"0", "60"} {
		header := http.Header{"Cache-Control": {"max-age=" + age}}
		for _, warm := range []bool{false, true} {
			onCloud(t, setup{}, func(u *user) {
				u.SetListHeader(header)
				for _, h := range u.Regions() {
					h.Break(cloudtest.Delay(50*time.Millisecond), cloudtest.On(cloudtest.RegionList))
				}
				least := 1
				if warm {
					u.good(5)
					pass(100 * time.Millisecond)
					least = 0
				}
				many(t, u, age, least)
			})
		}
		t.Run("sockets, max-age "+age, func(t *testing.T) {
			u := newUser(t, setup{})
			u.SetListHeader(header)
			many(t, u, age, 1)
		})
	}
}
