package failover_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// What was called never sent is never sent, also when its connection comes in that very moment.

// buffered reads a request's body before it sends it, as middleware does.
func buffered(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(req.Body)
		r := req.Clone(req.Context())
		r.Body, r.GetBody = io.NopCloser(bytes.NewReader(body)), nil
		return next.RoundTrip(r)
	})
}

func plain(next http.RoundTripper) http.RoundTripper { return next }

// impatient gives up after a second, and leaves the request behind.
func impatient(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		type answer struct {
			resp *http.Response
			err  error
		}
		came := make(chan answer, 1)
		go func() {
			resp, err := next.RoundTrip(req)
			came <- answer{resp, err}
		}()
		select {
		case a := <-came:
			return a.resp, a.err
		case <-time.After(time.Second):
			go func() {
				if a := <-came; a.err == nil {
					a.resp.Body.Close()
				}
			}()
			return nil, errors.New("the middleware has no patience")
		}
	})
}

// slowLog takes its time to write a failure, as a disk or a socket does.
type slowLog struct{ slog.Handler }

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }
func (slowLog) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		pass(10 * time.Millisecond)
	}
	return nil
}

func TestNeverSentIsNeverSent(t *testing.T) {
	for _, c := range []struct {
		name    string
		wrap    func(http.RoundTripper) http.RoundTripper
		log     *slog.Logger
		connect time.Duration // how long connecting takes
		cancel  bool          // the caller does after a second
	}{
		{"the caller cancels as the connection comes", plain, slog.New(slog.DiscardHandler), time.Second, true},
		{"the same, and the body is in a middleware's hands", buffered, slog.New(slog.DiscardHandler), time.Second, true},
		{"it comes while the failure is logged", plain, slog.New(slowLog{slog.DiscardHandler}), 1005 * time.Millisecond, true},
		{"the same, and the body is in a middleware's hands", buffered, slog.New(slowLog{slog.DiscardHandler}), 1005 * time.Millisecond, true},
		{"a middleware gives up as it comes", impatient, slog.New(slog.DiscardHandler), time.Second, false},
	} {
		for _, scheme := range []string{"http://", "https://"} {
			t.Run(scheme+c.name, func(t *testing.T) {
				var twice, wrong int
				const runs = 30
				for range runs {
					inWorld(t, func(w *world) {
						s := w.secure().serve(cloud, ok)
						rt := w.transport(failover.Wrap(c.wrap), failover.Logger(c.log))
						w.net.Delay(cloud+":80", c.connect)
						w.net.Delay(cloud+":443", c.connect)
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						if c.cancel {
							time.AfterFunc(time.Second, cancel)
						}
						r := w.post(ctx, rt, scheme+cloud, failover.Call{Repeat: failover.Once})
						pass(5 * time.Second)
						synctest.Wait()
						switch n := len(s.asked()); {
						case n > 1:
							twice++
						case n > 0 && r.err != nil && !r.trail.OutcomeUnknown:
							wrong++
						}
					})
				}
				if twice+wrong > 0 {
					t.Errorf("of %d calls %d were served twice, and %d were served that are said not to have been sent", runs, twice, wrong)
				}
			})
		}
	}
}
