package failover_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A user's code may end the goroutine that it runs on (runtime.Goexit), as a testing.T in a fake does. On a goroutine of the
// engine's that is a failed attempt, so that nobody waits for an answer that cannot come.

// leaver ends the goroutine of each request for which leave says so.
type leaver struct {
	http.RoundTripper
	leave func(*http.Request) bool
}

func (l leaver) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.leave(req) {
		runtime.Goexit()
	}
	return l.RoundTripper.RoundTrip(req)
}

// leavingBody is a body that ends the goroutine which reads it.
type leavingBody struct{}

func (leavingBody) Read([]byte) (int, error) { runtime.Goexit(); return 0, nil }
func (leavingBody) Close() error             { return nil }

func hasGoexit(err error) bool { return err != nil && strings.Contains(err.Error(), "runtime.Goexit") }

func TestAttemptWhoseGoroutineEnds(t *testing.T) {
	for _, path := range []string{method, join} {
		for name, ended := range map[string]struct {
			wrap func(http.RoundTripper) http.RoundTripper
			hook *httptrace.ClientTrace
			body io.ReadCloser
		}{
			"in the transport": {wrap: func(next http.RoundTripper) http.RoundTripper {
				return leaver{next, func(*http.Request) bool { return true }}
			}},
			"in an answer's body": {wrap: func(http.RoundTripper) http.RoundTripper {
				return roundTripper(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {protobuf}}, Body: leavingBody{}}, nil
				})
			}},
			"in a hook":             {hook: &httptrace.ClientTrace{GetConn: func(string) { runtime.Goexit() }}},
			"in the request's body": {body: leavingBody{}},
		} {
			t.Run(name+" of "+path, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.serve(project, status(503))
					var opts []failover.Option
					if ended.wrap != nil {
						opts = append(opts, failover.Wrap(ended.wrap))
					}
					rt := w.transport(opts...)
					ctx := context.Background() // no deadline
					if ended.hook != nil {
						ctx = httptrace.WithClientTrace(ctx, ended.hook)
					}
					req := must(http.NewRequestWithContext(ctx, http.MethodPost, "http://"+project+path, ended.body))
					req.Header.Set("Content-Type", protobuf)
					began := time.Now()
					resp, err := rt.RoundTrip(req)
					if took := time.Since(began); resp != nil || !hasGoexit(err) || took > 3*time.Second {
						t.Errorf("%v, %v after %v, want an error that names runtime.Goexit soon", resp, err, took)
					}
					var e *failover.Error
					if sent := ended.body == nil; !errors.As(err, &e) || sent && (len(e.Attempts) == 0 || !hasGoexit(e.Attempts[0].Err)) {
						t.Errorf("%v, want an attempt that says why", err)
					}
				})
			})
		}
	}
}

// The next attempt follows like after any other failure, unless the call must not happen twice.
func TestAttemptAfterOneWhoseGoroutineEnded(t *testing.T) {
	for class, call := range classes {
		inWorld(t, func(w *world) {
			w.serve(project, ok)
			var n atomic.Int64
			rt := w.transport(failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return leaver{next, func(req *http.Request) bool { return req.URL.Path == method && n.Add(1) == 1 }}
			}))
			r := w.post(context.Background(), rt, project, call)
			if again := call.Repeat != failover.Once; again != (r.status == 200) || again == hasGoexit(r.err) || again == r.trail.OutcomeUnknown {
				t.Errorf("%s: %d, %v, %+v", class, r.status, r.err, r.trail)
			}
		})
	}
}

// The read of a region list that ended so has failed, and the next one can be made.
func TestRegionListWhoseGoroutineEnds(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, status(503))
		w.serve(region1, ok)
		home.setList(regions("300", region1))
		var n atomic.Int64
		rt := w.transport(failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return leaver{next, func(req *http.Request) bool { return req.URL.Path == "/settings/regions" && n.Add(1) == 1 }}
		}))
		if err := rt.Prepare(context.Background(), "http://"+project, token); !hasGoexit(err) {
			t.Errorf("Prepare: %v, want an error that names runtime.Goexit", err)
		}
		pass(2 * time.Second)
		if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 || r.body != "from "+region1 {
			t.Errorf("later: %d, %v, want an answer of the region", r.status, r.err)
		}
	})
}
