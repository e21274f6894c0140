package failover_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// Many calls that meet one dead connection get new ones together: each with a set of its own would dial as often as there are calls,
// and cut off what another had just made.
func TestCallsThatBreakTogetherRenewOnce(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		inWorld(t, func(w *world) {
			s := w.serve(cloud, after(time.Second, ok)) // so that each call has a connection of its own, over HTTP/1
			var made atomic.Int64
			rt := w.transport(failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
				made.Add(1)
				return next
			}))
			together := func(attempts int) {
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() {
						r := w.post(within(w, 10*time.Second), rt, scheme+cloud, classes["safe"])
						if r.status != 200 || len(r.trail.Attempts) != attempts {
							t.Errorf("%s: %d, %v after %d attempts, want %d", scheme, r.status, r.err, len(r.trail.Attempts), attempts)
						}
					})
				}
				all.Wait()
			}
			together(1)
			s.set(ok)
			w.net.Freeze(cloud + ":80")
			w.net.Freeze(cloud + ":443")
			together(2)
			if n := made.Load(); n != 2 {
				t.Errorf("%s: %d sets of connections were made, want the first and one new", scheme, n)
			}
		})
	}
}
