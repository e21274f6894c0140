package failover_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// The caller's deadline is a wall, and its cancel ends a call at once, whatever the servers do.

// slack is how late a call may return after its deadline.
const slack = 100 * time.Millisecond

// silences are the ways in which a server can keep a client waiting. Each sets up every host of the test, and its region list.
var silences = map[string]func(w *world, hosts []string){
	"nobody answers the dial": func(w *world, hosts []string) {
		for _, h := range hosts {
			w.net.BlackHole(h+":80", true)
		}
	},
	"nobody answers the request": func(w *world, hosts []string) {
		for _, h := range hosts {
			w.serve(h, hang).setList(hang)
		}
	},
	"an answer that never ends": func(w *world, hosts []string) {
		for _, h := range hosts {
			w.serve(h, drip(200)).setList(drip(200))
		}
	},
	"an error that never ends": func(w *world, hosts []string) {
		for _, h := range hosts {
			w.serve(h, drip(503)).setList(drip(503))
		}
	},
	"the list alone answers nothing": func(w *world, hosts []string) {
		for _, h := range hosts {
			w.serve(h, status(503)).setList(hang)
		}
	},
	"pinned, and the list answers nothing": func(w *world, hosts []string) {
		for _, h := range hosts {
			w.serve(h, after(time.Second, status(451))).setList(hang)
		}
	},
	"hanging regions": func(w *world, hosts []string) {
		for _, h := range hosts {
			w.serve(h, hang).setList(regions("60", region1, region2))
		}
		w.net.BlackHole(region1+":80", true)
		w.serve(region2, hang)
	},
}

// drip writes a byte every 300 ms until the client goes.
func drip(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(code)
		for r.Context().Err() == nil {
			io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(300 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	}
}

var classes = map[string]failover.Call{
	"safe":      {Repeat: failover.Safe},
	"keyed":     {Repeat: failover.Keyed},
	"overtaken": {Repeat: failover.Keyed, Overtake: true},
	"once":      {Repeat: failover.Once},
}

var hostsOfAllKinds = []string{project, cloud, own, "foreign.example.com"}

func TestDeadlineIsAWall(t *testing.T) {
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			for class, call := range classes {
				for _, d := range []time.Duration{200 * time.Millisecond, time.Second, 5 * time.Second, 6 * time.Second, 10 * time.Second} {
					inWorld(t, func(w *world) {
						silence(w, hostsOfAllKinds)
						rt := w.transport(failover.Hosts(own))
						for _, host := range hostsOfAllKinds {
							r := w.post(within(w, d), rt, host, call)
							what := fmt.Sprintf("%s call to %s with %v", class, host, d)
							if r.took > d+slack {
								t.Errorf("%s took %v", what, r.took)
							}
							if r.err != nil && r.took > d && !errors.Is(r.err, context.DeadlineExceeded) {
								t.Errorf("%s: %v: not the deadline's error", what, r.err)
							}
							if r.err == nil && r.status < 400 {
								t.Errorf("%s: answered %d", what, r.status)
							}
							synctest.Wait()
							for _, g := range engineGoroutines() {
								if !strings.Contains(g, "fetchRegions") { // which has 2 s of its own
									t.Errorf("%s left:\n%s", what, g)
								}
							}
							pass(3 * time.Second)
							w.idle()
						}
					})
				}
			}
		})
	}
}

func TestCancelEndsACallAtOnce(t *testing.T) {
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			for class, call := range classes {
				inWorld(t, func(w *world) {
					silence(w, hostsOfAllKinds)
					rt := w.transport(failover.Hosts(own))
					for moment := time.Duration(0); moment < 12*time.Second; moment += 377 * time.Millisecond {
						for _, host := range []string{project, own} {
							ctx, cancel := context.WithCancel(context.Background())
							timer := time.AfterFunc(moment, cancel)
							r := w.post(ctx, rt, host, call)
							timer.Stop()
							cancel()
							if r.err != nil && !errors.Is(r.err, context.Canceled) {
								t.Errorf("%s call to %s cancelled after %v: %v", class, host, moment, r.err)
							}
							if r.took > moment {
								t.Errorf("%s call to %s cancelled after %v took %v", class, host, moment, r.took)
							}
							pass(3 * time.Second)
							w.idle()
						}
					}
				})
			}
		})
	}
}

// deaf is a transport that heeds no context, until it is told to go.
type deaf struct{ gone chan struct{} }

func (d deaf) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	<-d.gone
	return nil, errors.New("gone at last")
}

func TestWallHoldsOverATransportThatHeedsNoContext(t *testing.T) {
	for class, call := range classes {
		for _, host := range hostsOfAllKinds {
			inWorld(t, func(w *world) {
				d := deaf{make(chan struct{})}
				rt := w.over(d, failover.Hosts(own))
				r := w.post(within(w, 6*time.Second), rt, host, call)
				if r.took != 6*time.Second || !errors.Is(r.err, context.DeadlineExceeded) {
					t.Errorf("%s call to %s: %v after %v", class, host, r.err, r.took)
				}
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(7*time.Second, cancel)
				r = w.post(ctx, rt, host, call)
				if r.took != 7*time.Second || !errors.Is(r.err, context.Canceled) {
					t.Errorf("%s call to %s: %v after %v", class, host, r.err, r.took)
				}
				close(d.gone)
			})
		}
	}
}

// A request whose body never ends is not sent, and its caller is not kept waiting for it.
func TestWallHoldsWhileTheBodyIsRead(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve(project, ok)
		rt := w.transport()
		for i, path := range []string{method, "/rtc/validate", method, "/rtc/validate"} {
			pr, pw := io.Pipe()
			go pw.Write([]byte("and then nothing"))
			req, err := http.NewRequestWithContext(within(w, 2*time.Second), http.MethodPost, "http://"+project+path, pr)
			if err != nil {
				t.Fatal(err)
			}
			if i >= 2 { // which a request whose body is in memory has as well
				req.GetBody = func() (io.ReadCloser, error) { return pr, nil }
			}
			start := time.Now()
			resp, err := rt.RoundTrip(req)
			if took := time.Since(start); resp != nil || !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
				t.Errorf("%s: %v, %v after %v", path, resp, err, took)
			}
			synctest.Wait()
			if _, err := pw.Write([]byte("late")); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: the body was left open: %v", path, err)
			}
		}
		if n := len(s.asked()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// A body that fails ends the call, and nothing is sent.
func TestBrokenBody(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve(project, ok)
		rt := w.transport()
		broken := errors.New("the disk is gone")
		pr, pw := io.Pipe()
		pw.CloseWithError(broken)
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+project+method, pr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.RoundTrip(req); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		for name, req := range map[string]*http.Request{
			"shorter": request(project, strings.NewReader("abc"), 5),
			"longer":  request(project, strings.NewReader("abcdef"), 5),
		} {
			if resp, err := rt.RoundTrip(req); err == nil {
				t.Errorf("a body %s than stated: answered %s", name, resp.Status)
			}
		}
		if n := len(s.asked()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// request makes one with a body of a stated length.
func request(host string, body io.Reader, length int64) *http.Request {
	req, err := http.NewRequest(http.MethodPost, "http://"+host+method, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", protobuf)
	req.ContentLength = length
	return req
}

// A connection that nobody asked for has no end to be read, and the deadline of its call does not reach it.
func TestConnectionThatWasNotAskedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(project, upgraded)
		rt := w.transport()
		if r := w.post(within(w, 10*time.Second), rt, project, failover.Call{}); r.status != http.StatusSwitchingProtocols || r.body != "" || r.took != 0 {
			t.Errorf("got %d with %q, %v after %v", r.status, r.body, r.err, r.took)
		}
		asking := request(project, nil, 0)
		asking.Header.Set("Connection", "Upgrade")
		asking.Header.Set("Upgrade", "websocket")
		resp, err := rt.RoundTrip(asking)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		(&signal{ReadWriteCloser: resp.Body.(io.ReadWriteCloser)}).echo(t, project)
	})
}

// The call that a server answers and the deadline ends in the same moment is one or the other, never both and never neither.
func TestAnswerAtTheDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(project, after(2*time.Second, ok))
		rt := w.transport()
		for range 50 {
			if r := w.post(within(w, 2*time.Second), rt, project, failover.Call{}); r.err != nil && !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("got %v", r.err)
			}
		}
	})
}
