package failover_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// How much of an error's body is waited for: more where it is what the caller gets, little where another attempt follows.

func TestErrorBodyThatDoesNotEnd(t *testing.T) {
	const backoff = 200 * time.Millisecond // the widest before the second attempt
	tests := []struct {
		name   string
		host   string
		code   int
		off    bool
		status int           // that the call ends with
		took   time.Duration // at least
		more   time.Duration // than which it may take longer
	}{
		{"a refusal", project, 403, false, 403, 2 * time.Second, 0},
		{"the only attempt", own, 503, false, 503, 2 * time.Second, 0},
		{"failover is off", project, 503, true, 503, 2 * time.Second, 0},
		{"another region follows", project, 503, false, 200, 250 * time.Millisecond, backoff},
		{"pinned elsewhere", project, 451, false, 200, 250 * time.Millisecond, 0},
		{"pinned elsewhere, off", project, 451, true, 200, 250 * time.Millisecond, 0},
		{"the same host follows, and is the last", cloud, 503, false, 503, 2500 * time.Millisecond, 3 * backoff},
	}
	for _, test := range tests {
		for _, scheme := range []string{"http://", "https://"} {
			inWorld(t, func(w *world) {
				w.serve(test.host, drip(test.code)).setList(regions("60", "https://"+region1))
				w.serve(region1, ok)
				rt := w.secure().transport(failover.WithoutPrefetch())
				r := w.post(context.Background(), rt, scheme+test.host, failover.Call{Off: test.off})
				if r.status != test.status || r.took < test.took || r.took > test.took+test.more {
					t.Errorf("%s over %s: %d, %v after %v, want %d after %v", test.name, scheme, r.status, r.err, r.took, test.status, test.took)
				}
				if r.status == test.code && strings.Trim(r.body, " ") != "" || r.status == test.code && r.body == "" {
					t.Errorf("%s over %s: %q is not what came until then", test.name, scheme, r.body)
				}
				w.idle()
			})
		}
	}
}

// Of an error's body 64 KiB are read, and the rest of it holds nothing up.
func TestErrorBodyThatIsLarge(t *testing.T) {
	for _, size := range []int{64 << 10, 64<<10 + 1, 4 << 20} {
		inWorld(t, func(w *world) {
			text := strings.Repeat("x", size)
			w.serve(project, func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(403)
				rw.Write([]byte(text))
			})
			r := w.post(context.Background(), w.transport(failover.WithoutPrefetch()), project, failover.Call{})
			if r.status != 403 || r.body != text[:64<<10] || r.took > 0 {
				t.Errorf("%d bytes: %d with %d bytes, %v after %v", size, r.status, len(r.body), r.err, r.took)
			}
		})
	}
}
