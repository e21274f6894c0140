package failover_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// What comes late counts all the same.

// A refusal says in its body that a phone has rung. Until that is there a 503 is no proof that nothing happened.
func TestSIPStatusThatComesLate(t *testing.T) {
	const busy = `{"code":"unavailable","msg":"busy","meta":{"sip_status_code":"486","sip_status":"Busy here"}}`
	for _, c := range []struct {
		name    string
		body    string
		after   time.Duration
		then    func()
		class   failover.Repeat
		asked   int
		unknown bool
	}{
		{"soon", busy, 100 * time.Millisecond, nil, failover.Once, 1, false},
		{"late", busy, 1900 * time.Millisecond, nil, failover.Once, 1, false},
		{"too late", busy, 3 * time.Second, nil, failover.Once, 1, true},
		{"broken off", busy[:30], 0, func() { panic(http.ErrAbortHandler) }, failover.Once, 1, true},
		{"late, and of something else", `{"code":"unavailable","msg":"no"}`, 1900 * time.Millisecond, nil, failover.Once, 3, false},
		{"late, of what may be repeated anyway", busy, time.Second, nil, failover.Safe, 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.serve(cloud, func(rw http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					rw.Header().Set("Content-Type", "application/json")
					rw.WriteHeader(http.StatusServiceUnavailable)
					rw.(http.Flusher).Flush()
					select {
					case <-time.After(c.after):
					case <-r.Context().Done():
					}
					io.WriteString(rw, c.body)
					if c.then != nil {
						rw.(http.Flusher).Flush()
						c.then()
					}
				})
				r := w.post(within(w, 30*time.Second), w.transport(), cloud, failover.Call{Repeat: c.class})
				if n := len(s.asked()); n != c.asked || r.trail.OutcomeUnknown != c.unknown {
					t.Errorf("%d requests, outcome unknown %t, want %d and %t: %v", n, r.trail.OutcomeUnknown, c.asked, c.unknown, r.trail.Attempts)
				}
			})
		})
	}
}

// stayAway is a refusal whose host asks to be left alone.
func stayAway(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "60")
	status(http.StatusServiceUnavailable)(w, r)
}

// A host that asks to stay away is not asked again, whenever it says so: the slow attempt during the backoff before the next one,
// or the next one while the slow attempt still runs.
func TestRetryAfterOfASlowAttempt(t *testing.T) {
	for range 20 { // the backoff is random
		inWorld(t, func(w *world) {
			s := w.serve(cloud, after(5*time.Second+time.Millisecond, stayAway))
			start := time.Now()
			r := w.post(within(w, 30*time.Second), w.transport(), cloud, failover.Call{Repeat: failover.Safe})
			if n := len(s.asked()); n == 2 && s.asked()[1].at.Sub(start) <= 5*time.Second+time.Millisecond { // a backoff shorter than that
				return
			} else if n != 1 || r.status != http.StatusServiceUnavailable {
				t.Errorf("asked %d times: %v", n, r.trail.Attempts)
			}
		})
	}
	inWorld(t, func(w *world) {
		s := w.serve(cloud, first(after(7*time.Second, status(500)), stayAway, ok))
		r := w.post(within(w, 30*time.Second), w.transport(), cloud, failover.Call{Repeat: failover.Safe})
		if n := len(s.asked()); n != 2 || r.status != 500 {
			t.Errorf("asked %d times, status %d: %v", n, r.status, r.trail.Attempts)
		}
	})
}

// An attempt that could still be answered is cut only for one that is sure to follow. Where the region list has to be read first, and
// hangs, there is no time for one.
func TestSlowAttemptIsNotCutForNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, after(10500*time.Millisecond, ok))
		home.setList(hang)
		rt := w.transport(failover.WithoutPrefetch())
		if r := w.post(within(w, 11*time.Second), rt, project, failover.Call{Repeat: failover.Keyed}); r.status != http.StatusOK {
			t.Errorf("%v, %d requests", r.err, len(home.asked()))
		}
	})
}

// untracked is a context of a user's type, which package context watches with a goroutine.
type untracked struct {
	context.Context
	done chan struct{}
}

func (c *untracked) Done() <-chan struct{} { return c.done }

func TestRefusedCallLeavesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.post(&untracked{context.Background(), make(chan struct{})}, w.transport(), project, failover.Call{RequestID: "not good"})
		synctest.Wait()
		if left := goroutinesIn("context."); r.err == nil || len(left) > 0 {
			t.Errorf("%v, and %d goroutines are left: %q", r.err, len(left), left)
		}
	})
}

// The end of a call's time is the same while its body is read.
func TestExpiredWhileTheBodyIsRead(t *testing.T) {
	inWorld(t, func(w *world) {
		body, end := io.Pipe()
		defer end.Close()
		cause := errors.New("the user hung up")
		ctx, cancel := context.WithTimeoutCause(context.Background(), 6*time.Second, cause)
		defer cancel()
		var trail failover.Trail
		req, err := http.NewRequestWithContext(failover.WithCall(ctx, &failover.Call{Trail: &trail}), http.MethodPost, "http://"+project+method, body)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.transport().RoundTrip(req)
		var e *failover.Error
		if !errors.As(err, &e) || !e.Expired || !trail.Expired || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%#v; want it expired", err)
		}
	})
}

// OnAttempt hears of an attempt that the deadline met what the error says of it, and of one that was overtaken that it was not needed.
func TestReasonOfAttemptsThatAreLeft(t *testing.T) {
	for _, c := range []struct {
		answer http.HandlerFunc
		limit  time.Duration
		want   string
	}{
		{hang, 2 * time.Second, "no answer when the call ended"},
		{first(hang, ok), 20 * time.Second, "not needed any more"},
	} {
		inWorld(t, func(w *world) {
			w.serve(cloud, c.answer)
			reasons := make(chan string, 10)
			rt := w.transport(failover.OnAttempt(func(_ context.Context, a failover.Attempt) {
				if a.Err != nil {
					reasons <- a.Reason
				}
			}))
			r := w.post(within(w, c.limit), rt, cloud, failover.Call{Repeat: failover.Safe})
			synctest.Wait()
			close(reasons)
			if got := <-reasons; !strings.HasPrefix(got, c.want) || r.err != nil && !strings.Contains(r.err.Error(), got) {
				t.Errorf("%v: OnAttempt heard %q, want %q; the error is %v", c.limit, got, c.want, r.err)
			}
		})
	}
}

// A refusal that cannot be read is no proof either: one that is too long, or compressed by somebody on the way.
func TestRefusalThatCannotBeRead(t *testing.T) {
	refuse := func(padding int, zip bool) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			text := fmt.Sprintf(`{"code":"unavailable","msg":"%s","meta":{"sip_status_code":"486","sip_status":"Busy here"}}`, strings.Repeat("x", padding))
			rw.Header().Set("Content-Type", "application/json")
			if zip {
				rw.Header().Set("Content-Encoding", "gzip")
			}
			rw.WriteHeader(http.StatusServiceUnavailable)
			if !zip {
				io.WriteString(rw, text)
				return
			}
			z := gzip.NewWriter(rw)
			io.WriteString(z, text)
			z.Close()
		}
	}
	for _, scheme := range []string{"http://", "https://"} {
		for _, c := range []struct {
			padding   int
			zip, raw  bool
			mayDecode bool // net/http does
		}{{0, false, false, false}, {64 << 10, false, false, false}, {70 << 10, false, false, false}, {0, true, false, true}, {0, true, true, false}} {
			inWorld(t, func(w *world) {
				w.client.DisableCompression = c.raw
				s := w.secure().serve(cloud, refuse(c.padding, c.zip))
				r := w.post(context.Background(), w.transport(), scheme+cloud, failover.Call{Repeat: failover.Once})
				known := c.padding == 0 && (!c.zip || c.mayDecode)
				if n := len(s.asked()); n != 1 || r.trail.OutcomeUnknown == known {
					t.Errorf("%s %+v: the phone rang %d times, outcome unknown %t: %v", scheme, c, n, r.trail.OutcomeUnknown, r.err)
				}
			})
		}
	}
}

// A deadline that is too far away to be counted does not become none at all.
func TestFarDeadline(t *testing.T) {
	for _, year := range []int{2250, 2400, 9999} {
		inWorld(t, func(w *world) {
			s := w.serve(project, ok)
			ctx, cancel := context.WithDeadline(context.Background(), time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC))
			defer cancel()
			rt := w.transport(failover.WithoutPrefetch())
			w.post(ctx, rt, project, failover.Call{})
			w.post(context.Background(), rt, project, failover.Call{Floor: 1<<63 - 1})
			for i, r := range s.asked() {
				if ms, err := strconv.ParseInt(r.header.Get("X-Twirp-Timeout-Ms"), 10, 64); err != nil || ms < 24*time.Hour.Milliseconds() {
					t.Errorf("%d, call %d: X-Twirp-Timeout-Ms %d, %v", year, i, ms, err)
				}
			}
		})
	}
}
