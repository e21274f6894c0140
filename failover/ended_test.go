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

// What carries an attempt learns why it was ended: from the attempt's context, which has the caller's deadline and values.
func TestAttemptEndsWithTheCallersReason(t *testing.T) {
	gone := errors.New("the caller hung up")
	for name, c := range map[string]struct {
		context func(*world) context.Context
		why     error
	}{
		"deadline": {func(w *world) context.Context { return within(w, 2*time.Second) }, context.DeadlineExceeded},
		"cancel": {func(w *world) context.Context {
			ctx, cancel := context.WithCancelCause(within(w, time.Hour))
			time.AfterFunc(2*time.Second, func() { cancel(gone) })
			return ctx
		}, gone},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.serve(own, hang)
				ctx := c.context(w)
				var why error
				rt := w.transport(failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return roundTripper(func(req *http.Request) (*http.Response, error) {
						asked, _ := ctx.Deadline()
						if got, ok := req.Context().Deadline(); !ok || !got.Equal(asked) {
							t.Errorf("the attempt's deadline is %v, the caller's %v", got, asked)
						}
						resp, err := next.RoundTrip(req)
						why = context.Cause(req.Context())
						return resp, err
					})
				}))
				r := w.post(ctx, rt, own, failover.Call{})
				if !errors.Is(r.err, c.why) || r.took != 2*time.Second {
					t.Errorf("the call ended with %v after %v, not with %v", r.err, r.took, c.why)
				}
				synctest.Wait()
				if why != c.why {
					t.Errorf("the attempt ended with %v, not with %v", why, c.why)
				}
			})
		})
	}
}

// A transport with a clock of its own may give up in the moment of the caller's deadline, before anybody tells it. The call has
// run out of time all the same.
func TestTransportGivesUpAtTheDeadline(t *testing.T) {
	for range 50 {
		inWorld(t, func(w *world) {
			rt := w.transport(failover.Wrap(func(http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					req.Body.Close()
					end, _ := req.Context().Deadline()
					pass(time.Until(end))
					return nil, errors.New("i/o timeout")
				})
			}))
			r := w.post(within(w, 2*time.Second), rt, own, failover.Call{})
			if !errors.Is(r.err, context.DeadlineExceeded) || r.took != 2*time.Second {
				t.Fatalf("the call ended with %v after %v", r.err, r.took)
			}
		})
	}
}
