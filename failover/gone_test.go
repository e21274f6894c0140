package failover_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// What was ended and does not come back is not waited for.

// slowHome makes the end of the home region's connections take 20 s.
func slowHome(w *world) {
	dial := w.client.DialContext
	w.client.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil && address == project+":80" {
			return slowClose{conn}, nil
		}
		return conn, err
	}
}

// heedless is a middleware that holds what is for the home region's path for a minute, and does not look at the context.
func heedless(path string) failover.Option {
	return failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == project && req.URL.Path == path {
				pass(time.Minute)
				return nil, errors.New("late")
			}
			return next.RoundTrip(req)
		})
	})
}

func TestSilentRegionWhoseAttemptDoesNotComeBack(t *testing.T) {
	for _, c := range []struct {
		name string
		prep func(*world)
		opts []failover.Option
	}{
		{"its connection takes its time to close", slowHome, nil},
		{"a middleware is deaf to its context", func(*world) {}, []failover.Option{heedless(join), heedless(method)}},
	} {
		silentHome := func(w *world, other http.HandlerFunc) *failover.Transport { // whose other region is known, and answers so
			w.serve(project, hang).setList(regions("86400", region1))
			w.serve(region1, other)
			c.prep(w)
			rt := w.transport(c.opts...)
			if err := rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region1}}); err != nil {
				t.Fatal(err)
			}
			return rt
		}
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				rt := silentHome(w, upgraded)
				start := time.Now()
				s, status, err := ways["RoundTrip"](w, within(w, 30*time.Second), rt, project)
				if took := time.Since(start); s == nil || took > 11*time.Second {
					t.Errorf("connected %t, %d %v after %v; an attempt has 10 s", s != nil, status, err, took)
				}
				if s != nil {
					s.Close()
				}
				pass(3 * time.Minute)
			})
			inWorld(t, func(w *world) {
				rt := silentHome(w, ok)
				r := w.post(within(w, 25*time.Second), rt, project, failover.Call{Repeat: failover.Keyed})
				if r.status != http.StatusOK || r.took > 11*time.Second {
					t.Errorf("%d %v after %v; a create that is cut has 10 s", r.status, r.err, r.took)
				}
				pass(3 * time.Minute)
			})
		})
	}
}

// deadlineOnly is a context of a user's type whose deadline ends nothing.
type deadlineOnly struct {
	context.Context
	at time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// silently is one that tells its end only who asks.
type silently struct{ deadlineOnly }

func (silently) Done() <-chan struct{} { return nil }
func (s silently) Err() error {
	if time.Now().Before(s.at) {
		return nil
	}
	return context.DeadlineExceeded
}

func TestDeadlineThatEndsNothing(t *testing.T) {
	for class, call := range classes {
		for kind, of := range map[string]func(deadlineOnly) context.Context{
			"never ends": func(d deadlineOnly) context.Context { return d }, "ends silently": func(d deadlineOnly) context.Context { return silently{d} },
		} {
			inWorld(t, func(w *world) {
				w.serve(project, func(rw http.ResponseWriter, r *http.Request) { after(time.Hour, ok)(rw, r) })
				r := w.post(of(deadlineOnly{context.Background(), time.Now().Add(10 * time.Second)}), w.transport(failover.WithoutPrefetch()), project, call)
				if !errors.Is(r.err, context.DeadlineExceeded) || r.took > 10100*time.Millisecond {
					t.Errorf("%s, %s: %v after %v", class, kind, r.err, r.took)
				}
			})
		}
	}
	inWorld(t, func(w *world) {
		s := w.serve(project, ok)
		body, end := io.Pipe()
		defer end.Close()
		ctx := deadlineOnly{context.Background(), time.Now().Add(10 * time.Second)}
		start := time.Now()
		_, err := w.transport(failover.WithoutPrefetch()).RoundTrip(must(http.NewRequestWithContext(ctx, http.MethodPost, "http://"+project+method, body)))
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 10100*time.Millisecond || len(s.asked()) > 0 {
			t.Errorf("while the body is read: %v after %v, %d requests", err, took, len(s.asked()))
		}
	})
}

func TestPrepareWithATransportThatDoesNotComeBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(project, ok)
		start := time.Now()
		err := w.transport(heedless("/settings/regions")).Prepare(context.Background(), "ws://"+project, token)
		if took := time.Since(start); err == nil || took > 3*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		pass(2 * time.Minute)
	})
}

// A hook that leaves the caller's goroutine, as t.FailNow in a fake does, takes a probe with it. Another call makes the next.
func TestProbeThatLeaves(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, first(status(502), ok))
		w.serve(region1, ok)
		home.setList(regions("100000", region1))
		var leave atomic.Bool
		rt := w.transport(failover.OnAttempt(func(_ context.Context, a failover.Attempt) {
			if leave.Load() && a.Origin == "http://"+project {
				runtime.Goexit()
			}
		}))
		known(w, rt, project)
		pass(31 * time.Second)
		leave.Store(true)
		var probe sync.WaitGroup
		probe.Go(func() { w.post(context.Background(), rt, project, failover.Call{}) })
		probe.Wait()
		leave.Store(false)
		before := len(home.asked())
		for range 10 {
			pass(time.Minute)
			w.post(context.Background(), rt, project, failover.Call{})
		}
		if len(home.asked()) == before {
			t.Error("home was not asked again in ten minutes")
		}
	})
}
