package failover_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A request without a connection was never sent, and that is known.

// known makes one good call, so that the region list of a project is there when it is needed.
func known(w *world, rt *failover.Transport, host string) {
	w.t.Helper()
	if r := w.post(context.Background(), rt, host, failover.Call{}); r.status != 200 {
		w.t.Fatalf("the first call: %d, %v", r.status, r.err)
	}
	synctest.Wait()
}

// down makes a host unreachable: what is connected breaks, and dials are refused or, with hole, unanswered.
func (w *world) down(s *site, hole bool) {
	for _, server := range s.servers {
		server.Close()
	}
	if hole {
		w.net.BlackHole(s.host+":80", true)
		w.net.BlackHole(s.host+":443", true)
	}
	synctest.Wait()
}

func TestDeadPrimaryIsLeft(t *testing.T) {
	for name, call := range classes {
		for _, hole := range []bool{false, true} {
			inWorld(t, func(w *world) {
				home, one := w.serve(project, ok), w.serve(region1, ok)
				home.setList(regions("300", region1))
				rt := w.transport()
				known(w, rt, project)
				w.down(home, hole)
				r := w.post(context.Background(), rt, project, call)
				least, most := time.Duration(0), 200*time.Millisecond
				if hole {
					least, most = 3*time.Second, 3200*time.Millisecond
				}
				if r.status != 200 || r.body != "from "+region1 || r.took < least || r.took > most {
					t.Errorf("%s, black hole %t: %d %q, %v after %v", name, hole, r.status, r.body, r.err, r.took)
				}
				if len(one.asked()) != 1 {
					t.Errorf("%s: %d requests to the region", name, len(one.asked()))
				}
			})
		}
	}
}

// Whoever accepts the connection and then does not speak TLS has not given one.
func TestSilentHandshakeIsAFailedDial(t *testing.T) {
	inWorld(t, func(w *world) {
		w.net.Listen(project + ":443") // its backlog takes connections, and nobody reads them
		w.net.Listen(cloud + ":443")
		rt := w.transport()
		for _, host := range []string{project, cloud} {
			r := w.post(within(w, 10*time.Second), rt, "https://"+host, failover.Call{Repeat: failover.Once})
			var e *failover.Error
			if !errors.As(r.err, &e) || e.OutcomeUnknown || len(e.Attempts) < 2 || e.Attempts[0].Duration != 3*time.Second {
				t.Errorf("%s: %v", host, r.err)
			}
		}
	})
}

// Whether a call that ended early may have taken effect: not while it was still dialling.
func TestOutcomeWhileDialling(t *testing.T) {
	for name, call := range classes {
		for _, scheme := range []string{"http://", "https://"} {
			inWorld(t, func(w *world) {
				for _, host := range hostsOfAllKinds {
					w.serve(host, hang)
					w.net.Delay(host+":80", 2*time.Second)
					w.net.Delay(host+":443", 2*time.Second)
				}
				rt := w.transport(failover.Hosts(own))
				for _, host := range hostsOfAllKinds {
					for moment, unknown := range map[time.Duration]bool{time.Second: false, 2500 * time.Millisecond: true} {
						for _, body := range []string{"request", ""} {
							r := w.send(within(w, moment), rt, scheme+host, call, body)
							var e *failover.Error
							if !errors.As(r.err, &e) || e.OutcomeUnknown != unknown {
								t.Errorf("%s call to %s with %q ended after %v: outcome unknown should be %t: %v", name, host, body, moment, unknown, r.err)
							}
							pass(3 * time.Second)
							w.client.CloseIdleConnections()
							w.net.Break(host + ":80")
							w.net.Break(host + ":443")
							synctest.Wait() // until it is known
						}
					}
				}
			})
		}
	}
}

// A call that was reported as never sent is not sent later, even if its transport looks on for a connection: net/http itself
// may take one in the very moment of the cancel.
func TestNeverSentStaysUnsent(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		inWorld(t, func(w *world) {
			s := w.serve(project, ok)
			w.net.Delay(project+":80", 2*time.Second)
			w.net.Delay(project+":443", 2*time.Second)
			connected := false
			rt := w.transport(failover.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					return rt.RoundTrip(req.WithContext(context.WithoutCancel(req.Context())))
				})
			}))
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
			r := w.post(ctx, rt, scheme+project, failover.Call{})
			if !errors.Is(r.err, context.Canceled) || r.trail.OutcomeUnknown || r.took != time.Second {
				t.Errorf("cancelled while it waited for a connection: %v after %v", r.err, r.took)
			}
			pass(5 * time.Second)
			synctest.Wait()
			if !connected {
				t.Error("no connection came: nothing was tested")
			}
			for _, a := range s.asked() {
				if a.body != "" {
					t.Errorf("%s reported as never sent, and served", scheme)
				}
			}
		})
	}
}

// The same where a connection is there in the moment of the cancel: net/http may take either.
func TestNeverSentOverAConnectionThatIsThere(t *testing.T) {
	for name, http2 := range map[string]bool{"http://": false, "https://": false, "https:// with HTTP/2": true} {
		scheme, _, _ := strings.Cut(name, " ")
		for _, body := range []string{"request", ""} {
			inWorld(t, func(w *world) {
				s := w.serve(project, ok)
				w.client.ForceAttemptHTTP2 = http2
				rt := w.transport(failover.WithoutPrefetch())
				known(w, rt, scheme+project)
				var connected atomic.Int64
				for range 40 {
					ctx, cancel := context.WithCancel(context.Background())
					over := make(chan struct{})
					ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
						GetConn: func(string) { cancel(); <-over },
						GotConn: func(httptrace.GotConnInfo) { connected.Add(1) },
					})
					r := w.send(ctx, rt, scheme+project, failover.Call{}, body)
					if !errors.Is(r.err, context.Canceled) || r.trail.OutcomeUnknown {
						t.Errorf("%s %q: outcome unknown %t, %v", name, body, r.trail.OutcomeUnknown, r.err)
					}
					before := len(s.asked())
					close(over)
					synctest.Wait()
					for _, a := range s.asked()[before:] {
						if a.body != "" || body == "" {
							t.Errorf("%s %q was reported as never sent, and served", name, body)
						}
					}
					known(w, rt, scheme+project) // so that a connection is there again
				}
				if connected.Load() == 0 {
					t.Errorf("%s %q: no connection was taken: nothing was tested", name, body)
				}
			})
		}
	}
}

// A kept-alive connection on which nothing could be written, and then no other: nothing was sent.
func TestNeverSentAfterADeadIdleConnection(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		inWorld(t, func(w *world) { // a refused dial leads on
			home, one := w.serve(project, ok), w.serve(region1, ok)
			home.setList(regions("300", scheme+region1))
			rt := w.transport()
			known(w, rt, scheme+project)
			w.net.Unwritable(project + ":80")
			w.net.Unwritable(project + ":443")
			w.net.Close(project + ":80")
			w.net.Close(project + ":443")
			r := w.post(context.Background(), rt, scheme+project, failover.Call{Repeat: failover.Once})
			if r.status != 200 || len(one.asked()) != 1 || r.trail.Attempts[0].Reason != "no connection" {
				t.Errorf("%s %d, %v; %+v", scheme, r.status, r.err, r.trail.Attempts)
			}
		})
		inWorld(t, func(w *world) { // a cancel during the dial
			s := w.serve(own, ok)
			rt := w.transport()
			known(w, rt, scheme+own)
			w.net.Unwritable(own + ":80")
			w.net.Unwritable(own + ":443")
			w.net.Delay(own+":80", 2*time.Second)
			w.net.Delay(own+":443", 2*time.Second)
			r := w.post(within(w, time.Second), rt, scheme+own, failover.Call{})
			if r.err == nil || r.trail.OutcomeUnknown {
				t.Errorf("%s ended while it dialled anew: %d, %v", scheme, r.status, r.err)
			}
			pass(5 * time.Second)
			if n := len(s.asked()); n != 1 {
				t.Errorf("%s %d requests were served, want the first alone", scheme, n)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Without a deadline of the caller's a call has 10 s for each possible attempt, and no less than its floor.
func TestTimeWithoutADeadline(t *testing.T) {
	tests := []struct {
		host string
		call failover.Call
		opt  failover.Option
		want time.Duration
	}{
		{project, failover.Call{}, nil, 30 * time.Second},
		{cloud, failover.Call{}, nil, 30 * time.Second},
		{own, failover.Call{}, nil, 10 * time.Second},
		{own, failover.Call{}, failover.Hosts(own), 30 * time.Second},
		{project, failover.Call{}, failover.Off(), 10 * time.Second},
		{project, failover.Call{Off: true}, nil, 10 * time.Second},
		{project, failover.Call{Repeat: failover.Once, Floor: 45 * time.Second}, nil, 45 * time.Second},
		{project, failover.Call{Repeat: failover.Once, Floor: 20 * time.Second}, nil, 30 * time.Second},
		{own, failover.Call{Repeat: failover.Once, Floor: 32 * time.Second}, nil, 32 * time.Second},
	}
	for _, test := range tests {
		inWorld(t, func(w *world) {
			s := w.serve(test.host, hang)
			var opts []failover.Option
			if test.opt != nil {
				opts = append(opts, test.opt)
			}
			rt := w.transport(opts...)
			r := w.post(context.Background(), rt, test.host, test.call)
			if r.took != test.want || !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("%s %+v: %v after %v, want %v", test.host, test.call, r.err, r.took, test.want)
			}
			wantTimeout(t, s.asked()[0], test.want)
			pass(10 * time.Second)

			// A deadline of the caller's wins over everything.
			if r := w.post(within(w, 7*time.Second), rt, test.host, test.call); r.took != 7*time.Second {
				t.Errorf("%s %+v with 7 s took %v", test.host, test.call, r.took)
			}
		})
	}
}

// wantTimeout checks what a request tells the server of its time: what is left to the call, and 250 ms.
func wantTimeout(t *testing.T, a asked, left time.Duration) {
	t.Helper()
	got, err := strconv.Atoi(a.header.Get("X-Twirp-Timeout-Ms"))
	if want := int((left + 250*time.Millisecond).Milliseconds()); err != nil || got != want {
		t.Errorf("X-Twirp-Timeout-Ms %q, want %d", a.header.Get("X-Twirp-Timeout-Ms"), want)
	}
}

func TestTimeLeftIsToldToTheServer(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, after(time.Second, status(503)))
		start := time.Now()
		w.post(within(w, 10*time.Second), w.transport(), project, failover.Call{})
		asked := home.asked()
		if len(asked) != 3 {
			t.Fatalf("%d requests", len(asked))
		}
		for _, a := range asked {
			wantTimeout(t, a, 10*time.Second-a.at.Sub(start))
		}
	})
}

// http.Client's own Timeout is a deadline like any other.
func TestClientTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, hang)
		client := &http.Client{Transport: w.transport(), Timeout: 6 * time.Second}
		for range 20 {
			before := len(home.asked())
			start := time.Now()
			resp, err := client.Post("http://"+project+method, protobuf, strings.NewReader("request"))
			if took := time.Since(start); resp != nil || !errors.Is(err, context.DeadlineExceeded) || took != 6*time.Second {
				t.Errorf("%v, %v after %v", resp, err, took)
			}
			if n := len(home.asked()) - before; n != 1 {
				t.Errorf("%d requests, want 1: a keyed call is not overtaken", n)
			}
			pass(time.Second)
		}
	})
}
