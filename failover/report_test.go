package failover_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// What a caller, an observer and a log get to know.

func edge(code int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(code)
		w.Write([]byte("upstream connect error"))
	}
}

// Retry-After concerns the host that sent it.
func TestRetryAfter(t *testing.T) {
	never := time.Duration(-1)
	tests := []struct {
		name   string
		code   int
		value  string
		wait   time.Duration // before the second attempt on the same host; never: there is none
		backed bool          // it is a backoff instead
		told   time.Duration // what the caller is told if it is not answered
	}{
		{"two minutes", 503, "120", never, false, 2 * time.Minute},
		{"one second", 503, "1", time.Second, false, time.Second},
		{"two seconds", 503, "2", 2 * time.Second, false, 2 * time.Second},
		{"three seconds", 503, "3", never, false, 3 * time.Second},
		{"zero", 503, "0", 0, false, 0},
		{"garbage", 503, "soon", 0, true, 0},
		{"negative", 503, "-7", 0, true, 0},
		{"too many requests", 429, "120", never, false, 2 * time.Minute},
		{"a 500", 500, "120", 0, true, 0},
		{"a 502", 502, "120", 0, true, 0},
	}
	for _, test := range tests {
		inWorld(t, func(w *world) {
			// The same host.
			s := w.serve(cloud, edge(test.code, test.value))
			rt := w.transport()
			r := w.post(context.Background(), rt, cloud, failover.Call{})
			if r.status != test.code || r.body != "upstream connect error" || r.trail.RetryAfter != test.told {
				t.Errorf("%s: %d %q, %v; RetryAfter %v, want %v", test.name, r.status, r.body, r.err, r.trail.RetryAfter, test.told)
			}
			switch attempts := r.trail.Attempts; {
			case test.wait == never:
				if len(attempts) != 1 || r.took > 0 || len(s.asked()) != 1 {
					t.Errorf("%s: %d attempts in %v, want one at once", test.name, len(attempts), r.took)
				}
			case len(attempts) != 3:
				t.Errorf("%s: %d attempts, want 3", test.name, len(attempts))
			case test.backed:
				if attempts[1].Wait > 200*time.Millisecond || attempts[2].Wait > 400*time.Millisecond {
					t.Errorf("%s: waits %v and %v are no backoff", test.name, attempts[1].Wait, attempts[2].Wait)
				}
			case attempts[1].Wait != test.wait || attempts[2].Wait != test.wait:
				t.Errorf("%s: waits %v and %v, want %v", test.name, attempts[1].Wait, attempts[2].Wait, test.wait)
			}

			// An untried region is tried without regard to it.
			home := w.serve(project, edge(test.code, test.value))
			w.serve(region1, ok)
			home.setList(regions("60", region1))
			r = w.post(context.Background(), rt, project, failover.Call{})
			if test.code == 429 {
				if r.status != 429 || r.trail.RetryAfter != test.told {
					t.Errorf("%s: %d, %v", test.name, r.status, r.err)
				}
			} else if r.status != 200 || r.took > 200*time.Millisecond || r.trail.RetryAfter != 0 {
				t.Errorf("%s: %d, %v after %v; RetryAfter %v", test.name, r.status, r.err, r.took, r.trail.RetryAfter)
			}
		})
	}
	inWorld(t, func(w *world) { // a date
		w.serve(cloud, func(rw http.ResponseWriter, r *http.Request) {
			edge(503, time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))(rw, r)
		})
		if r := w.post(context.Background(), w.transport(), cloud, failover.Call{}); r.trail.RetryAfter != 90*time.Second || len(r.trail.Attempts) != 1 {
			t.Errorf("a date: %+v", r.trail)
		}
	})
	inWorld(t, func(w *world) { // longer than the time that is left
		w.serve(cloud, edge(503, "2"))
		if r := w.post(within(w, 5*time.Second), w.transport(), cloud, failover.Call{}); r.status != 503 || len(r.trail.Attempts) != 3 || r.took != 4*time.Second {
			t.Errorf("5 s: %d, %v after %v; %d attempts", r.status, r.err, r.took, len(r.trail.Attempts))
		}
	})
}

// leaky is a transport whose errors tell the token, as those of some libraries do.
type leaky struct{}

func (leaky) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, fmt.Errorf("cannot send %s to %s?access_token=%s", req.Header.Get("Authorization"), req.URL.Host, token)
}

// parts of the token that must not be seen anywhere.
var parts = strings.Split(token, ".")

func wantNoToken(t *testing.T, what, text string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s holds the token: %s", what, text)
			return
		}
	}
}

func TestNoTokenIsTold(t *testing.T) {
	inWorld(t, func(w *world) {
		var logged bytes.Buffer
		log := failover.Logger(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
		var seen reports
		check := func(what string, err error) {
			t.Helper()
			if err == nil {
				t.Errorf("%s: no error", what)
				return
			}
			var e *failover.Error
			if !errors.As(err, &e) {
				t.Errorf("%s: %T is no *failover.Error", what, err)
				return
			}
			for _, format := range []string{"%v", "%+v", "%s", "%q"} {
				wantNoToken(t, what+" in "+format, fmt.Sprintf(format, err))
				wantNoToken(t, what+"'s trail in "+format, fmt.Sprintf(format, e.Trail))
				for _, a := range e.Attempts {
					wantNoToken(t, what+"'s attempt in "+format, fmt.Sprintf(format, a))
				}
			}
		}
		r := w.post(context.Background(), w.over(leaky{}, log, failover.OnAttempt(seen.take)), project, failover.Call{})
		check("a leaky transport", r.err)

		rt := w.transport(log, failover.OnAttempt(seen.take))
		w.serve(cloud, redirect("https://"+token+".example.com/?access_token="+token))
		check("a redirect", w.post(context.Background(), rt, cloud, failover.Call{}).err)
		w.serve(project, status(503)).setList(status(401))
		_, err := dialled(context.Background(), rt, "ws://"+project, fmt.Errorf("dial ws://%s/rtc?access_token=%s: refused", project, token))
		check("a dial function", err)
		for _, errText := range []string{
			fmt.Sprint(rt.Prepare(context.Background(), "ws://"+project, token)),
			fmt.Sprint(rt.Prepare(context.Background(), "ws://"+token+"@"+project, token)),
			fmt.Sprint(must2(failover.New(nil, failover.Origins("https://"+token+"@x")))),
			fmt.Sprint(must2(failover.New(nil, failover.Hosts("x/"+token)))),
		} {
			wantNoToken(t, "an error", errText)
		}

		// A server that echoes it: the answer is the caller's, the log is not.
		w.serve(own, func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(401)
			rw.Write([]byte("invalid token " + r.Header.Get("Authorization")))
		})
		w.post(context.Background(), rt, own, failover.Call{})

		for _, a := range seen.all {
			wantNoToken(t, "OnAttempt", fmt.Sprintf("%+v", a))
		}
		synctest.Wait()
		wantNoToken(t, "the log", logged.String())
		for _, level := range []string{"DEBUG", "INFO", "WARN"} {
			if !strings.Contains(logged.String(), "level="+level) {
				t.Errorf("nothing was logged at %s", level)
			}
		}
	})
}

func must2[T any](_ T, err error) error { return err }

// OnAttempt is called once for each attempt, with the context of its call; so are all that are given.
func TestOnAttempt(t *testing.T) {
	type key struct{}
	inWorld(t, func(w *world) {
		home := w.serve(project, status(500))
		w.serve(region1, status(503))
		w.serve(region2, ok)
		home.setList(regions("60", region1, region2))
		var one, two reports
		rt := w.transport(failover.OnAttempt(one.take), failover.OnAttempt(two.take))
		r := w.post(context.WithValue(context.Background(), key{}, "mine"), rt, project, failover.Call{})
		synctest.Wait()
		want := []string{"1 http://" + project + " 500", "2 http://" + region1 + " 503", "3 http://" + region2 + " 200"}
		for _, seen := range []*reports{&one, &two} {
			if got := seen.attempts(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			for _, ctx := range seen.ctx {
				if ctx.Value(key{}) != "mine" {
					t.Error("the context is not the call's")
				}
			}
		}
		for i, a := range one.all {
			b := r.trail.Attempts[i]
			if a.Number != b.Number || a.Start != b.Start || a.Wait != b.Wait || a.Duration != b.Duration {
				t.Errorf("OnAttempt saw %+v, the trail has %+v", a, b)
			}
		}
	})
}

// ids returns the request ids that a site saw.
func ids(s *site) (ids []string) {
	for _, a := range s.asked() {
		ids = append(ids, a.id)
	}
	return ids
}

func TestRequestIDs(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve(cloud, status(503))
		rt := w.transport()
		seen := map[string]bool{}
		for range 20 {
			before := len(s.asked())
			r := w.post(context.Background(), rt, cloud, failover.Call{})
			got := ids(s)[before:]
			if len(got) != 3 || got[0] != got[1] || got[1] != got[2] || got[0] != r.trail.RequestID || failover.CheckRequestID(got[0]) != nil {
				t.Errorf("a call's ids: %q, the trail has %q", got, r.trail.RequestID)
			}
			if seen[got[0]] {
				t.Errorf("two calls have the id %q", got[0])
			}
			seen[got[0]] = true
		}

		// One of the caller's goes out as it is, and the raw header of a request never does.
		for _, raw := range []string{failover.RequestIDHeader, "x-livekit-request-id", "X-LIVEKIT-REQUEST-ID"} {
			for _, mine := range []string{"", "my-id/7~"} {
				before := len(s.asked())
				r := w.withHeader(rt, cloud, failover.Call{RequestID: mine}, raw, "raw")
				for _, a := range s.asked()[before:] {
					values := a.header.Values(failover.RequestIDHeader)
					if len(values) != 1 || values[0] == "raw" || mine != "" && values[0] != mine || values[0] != r.trail.RequestID {
						t.Errorf("with %q in %s and RequestID %q: %q was sent", "raw", raw, mine, values)
					}
				}
			}
		}

		before := len(s.asked())
		for _, bad := range []string{" ", "a b", "ü", "a\nb", "\x7f", strings.Repeat("x", 129)} {
			if r := w.post(context.Background(), rt, cloud, failover.Call{RequestID: bad}); r.err == nil || !strings.Contains(r.err.Error(), "request id") {
				t.Errorf("request id %q: %d, %v", bad, r.status, r.err)
			}
		}
		if n := len(s.asked()) - before; n != 0 {
			t.Errorf("%d requests were sent with ids that are none", n)
		}
		if r := w.post(context.Background(), rt, cloud, failover.Call{RequestID: strings.Repeat("x", 128)}); r.status != 503 {
			t.Errorf("128 characters: %v", r.err)
		}
	})
}

// An error names the call, the host, each attempt and whether the call may have taken effect.
func TestErrorText(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, hangUp)
		w.serve(region1, hangUp)
		home.setList(regions("60", region1))
		r := w.post(context.Background(), w.transport(), project, failover.Call{RequestID: "my-id"})
		var e *failover.Error
		if !errors.As(r.err, &e) || len(e.Attempts) != 3 || !e.OutcomeUnknown || e.Host != project || e.Op != "POST "+method {
			t.Fatalf("got %+v", r.err)
		}
		for _, want := range []string{"POST " + method, project, region1, "my-id", "outcome unknown", "attempt 1 ", "attempt 2 ", "attempt 3 ", "no attempt is left"} {
			if !strings.Contains(e.Error(), want) {
				t.Errorf("%q is not in: %s", want, e)
			}
		}
		for _, a := range e.Attempts {
			if a.Err == nil || a.Status != 0 || a.Start.IsZero() || a.Reason == "" {
				t.Errorf("attempt %+v", a)
			}
		}
	})
}

// A Trail is complete when RoundTrip returns, whatever the end, and nobody writes it afterwards.
func TestTrailIsComplete(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"answered": ok, "hanging": hang, "late": after(5*time.Second, ok)} {
		inWorld(t, func(w *world) {
			home := w.serve(project, hang)
			w.serve(region1, answer)
			home.setList(regions("60", region1))
			rt := w.transport()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					r := w.post(within(w, 10*time.Second), rt, project, create)
					if n := len(r.trail.Attempts); n < 2 || r.trail.RequestID == "" {
						t.Errorf("%s: %d attempts, request id %q", name, n, r.trail.RequestID)
					}
					r.trail.Attempts = append(r.trail.Attempts[:0], failover.Attempt{}) // a race, if anybody else holds it
				})
			}
			all.Wait()
		})
	}
}

// A token need not look like one: credentials may give any text. What a transport or a dial function quotes of it is not told.
func TestNoOpaqueTokenIsTold(t *testing.T) {
	const opaque = "sesame-0123456789"
	inWorld(t, func(w *world) {
		var logged bytes.Buffer
		var seen reports
		rt := w.over(roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, fmt.Errorf("bad header %q in %s", strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "), strings.ReplaceAll(req.URL.RawQuery, "=", " "))
		}), failover.Logger(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))), failover.OnAttempt(seen.take))
		req, err := http.NewRequest(http.MethodPost, "http://"+project+method, strings.NewReader("request"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+opaque)
		_, called := rt.RoundTrip(req)
		ws, err := http.NewRequest(http.MethodGet, "http://"+project+"/rtc?access_token="+opaque, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, joined := rt.RoundTrip(ws)
		connected := rt.Connect(context.Background(), "ws://"+project, opaque, func(context.Context, string) error {
			return errors.New("bad token " + opaque)
		})
		for what, err := range map[string]error{"a call": called, "a join": joined, "Connect": connected,
			"Prepare": rt.Prepare(context.Background(), "ws://other.livekit.cloud", opaque)} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
			if text := fmt.Sprintf("%v %+v %q", err, err, err); strings.Contains(text, opaque) {
				t.Errorf("%s tells the token: %s", what, text)
			}
		}
		synctest.Wait()
		if len(seen.all) == 0 {
			t.Error("no attempt was reported")
		}
		for _, a := range seen.all {
			if text := fmt.Sprint(a, a.Err); strings.Contains(text, opaque) {
				t.Errorf("OnAttempt tells the token: %s", text)
			}
		}
		if text := logged.String(); strings.Contains(text, opaque) || !strings.Contains(text, "bad header") {
			t.Errorf("the log: %s", text)
		}
	})
}
