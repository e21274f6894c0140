package failover_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A call whose kept-alive connection turned out to be dead, and that ended while another one was dialled, is not sent over that one
// later: the body that net/http was given anew is taken from it as well.
func TestNeverSentWithTheBodyAskedForAgain(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		inWorld(t, func(w *world) {
			s := w.serve(project, ok)
			rt := w.transport(failover.WithoutPrefetch(), failover.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					return rt.RoundTrip(req.WithContext(context.WithoutCancel(req.Context()))) // so that it goes on dialling
				})
			}))
			known(w, rt, scheme+project)
			w.net.Unwritable(project + ":80")
			w.net.Unwritable(project + ":443")
			w.net.Delay(project+":80", 2*time.Second)
			w.net.Delay(project+":443", 2*time.Second)
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			r := w.post(ctx, rt, scheme+project, failover.Call{Repeat: failover.Once})
			if !errors.Is(r.err, context.Canceled) || r.trail.OutcomeUnknown || r.took != time.Second {
				t.Errorf("%s cancelled while it dialled anew: outcome unknown %t, %v after %v", scheme, r.trail.OutcomeUnknown, r.err, r.took)
			}
			pass(5 * time.Second)
			synctest.Wait()
			for _, a := range s.asked()[1:] {
				if a.body != "" {
					t.Errorf("%s was reported as never sent, and served", scheme)
				}
			}
		})
	}
}
