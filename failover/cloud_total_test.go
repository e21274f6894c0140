package failover_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// All of LiveKit Cloud fails. Repeats must not multiply its load, and a call that fails alone still gets its own.
func TestTotalOutageOfTheCloud(t *testing.T) {
	const callers, each = 64, 2000
	for name, test := range map[string]struct {
		fault   cloudtest.Fault
		code    twirp.ErrorCode
		message string
	}{
		"internal":    {cloudtest.TwirpError(twirp.InternalError("database is gone")), twirp.Internal, "database is gone"},
		"unavailable": {cloudtest.TwirpError(twirp.NewError(twirp.Unavailable, "draining")), twirp.Unavailable, "draining"},
	} {
		onCloud(t, setup{}, func(u *user) {
			u.good(1)
			u.Forget()
			for _, h := range append(u.Regions(), u.Agents()) {
				h.Break(test.fault, cloudtest.On(cloudtest.API))
			}
			work := make(chan int, each)
			for i := range each {
				work <- i
			}
			close(work)
			var mu sync.Mutex
			var spent *lkrpc.Error
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for i := range work {
						e := u.rooms(context.Background()).failure(t)
						if e.Code() != test.code || !strings.Contains(e.Msg(), test.message) {
							t.Errorf("%s: %v", name, e)
						}
						mu.Lock()
						if strings.Contains(e.Msg(), "retry budget is spent") {
							spent = e
						}
						mu.Unlock()
						if i == each/2 { // this one goes to another host, which has a budget of its own
							_, err := u.client.CloudAgent.ListAgents(context.Background(), &livekit.ListAgentsRequest{})
							if e := (told{err: err}).failure(t); len(e.Attempts) != 3 || e.Code() != test.code {
								t.Errorf("%s: another host meanwhile: %v", name, e)
							}
						}
					}
				})
			}
			all.Wait()

			n := u.asked()
			if per := float64(n[0]+n[1]+n[2]) / each; per > 1.35 {
				t.Errorf("%s: %.3f requests a call, want at most 1.35", name, per)
			}
			if n := len(calls(u.Agents())); n != 3 {
				t.Errorf("%s: %d requests to another host, want 3", name, n)
			}
			if spent == nil {
				t.Fatalf("%s: no error names the spent budget", name)
			}
			if !strings.Contains(spent.Error(), "retry budget is spent") || spent.Code() != test.code || len(spent.Attempts) == 3 {
				t.Errorf("%s: %v", name, spent)
			}

			pass(3 * time.Second)
			if e := u.rooms(context.Background()).failure(t); len(e.Attempts) != 3 || strings.Contains(e.Msg(), "budget") {
				t.Errorf("%s: a lone failing call afterwards: %v", name, e)
			}
		})
	}
}
