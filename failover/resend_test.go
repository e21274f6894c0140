package failover_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lkrpc/lkrpc/failover"
)

// net/http sends a request again by itself when it thinks it may. Here an attempt is one request; and what net/http knows,
// that a server did not process a request, is used.

// secure makes the client speak HTTP/2 over TLS.
func (w *world) secure() *world {
	w.client.ForceAttemptHTTP2 = true
	return w
}

func TestRefusedStreams(t *testing.T) {
	answer := func(c *h2conn, stream uint32) { c.answer(stream, "done") }
	refuse := func(c *h2conn, stream uint32) { c.reset(stream, codeRefused) }
	goAway := func(c *h2conn, stream uint32) { c.goAway(stream-1, codeNone) }
	begin := func(c *h2conn, stream uint32) { c.goAway(stream, codeNone); c.Close() }
	fail := func(c *h2conn, stream uint32) { c.reset(stream, codeInternal) }
	cancel := func(c *h2conn, stream uint32) { c.reset(stream, codeCancel) }
	object := func(c *h2conn, stream uint32) { c.reset(stream, codeProtocol) } // net/http sends again after that too
	shut := func(c *h2conn, stream uint32) { c.Close() }

	tests := []struct {
		name   string
		first  func(c *h2conn, stream uint32)
		proven bool // that the server did not process the request
		empty  bool // and that without a body, of which net/http tells less
	}{
		{"REFUSED_STREAM", refuse, true, true},
		{"GOAWAY before the stream", goAway, true, false},
		{"GOAWAY after the stream, then the end", begin, false, false},
		{"PROTOCOL_ERROR", object, false, false},
		{"INTERNAL_ERROR", fail, false, false},
		{"CANCEL", cancel, false, false},
		{"the connection closed", shut, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for class, call := range classes {
				for _, body := range []string{"request", ""} {
					for _, kind := range []struct{ warm, clear bool }{{}, {warm: true}, {clear: true}, {warm: true, clear: true}} {
						warm := kind.warm // on a later stream of the connection, not its first
						inWorld(t, func(w *world) {
							var script []func(*h2conn, uint32)
							if warm {
								script = append(script, answer)
							}
							script = append(script, test.first, answer)
							act := func(c *h2conn, stream uint32, n int) { script[min(n, len(script))-1](c, stream) }
							scheme, s := "https://", (*h2server)(nil)
							if kind.clear { // HTTP/2 without TLS
								w.client.Protocols = new(http.Protocols)
								w.client.Protocols.SetUnencryptedHTTP2(true)
								scheme, s = "http://", w.serveFrames(w.net.Listen(project+":80"), act)
							} else {
								s = w.serveH2(project, act)
							}
							rt := w.secure().transport()
							w.noRegions(rt, scheme+project)
							if warm {
								w.send(context.Background(), rt, scheme+project, call, "warm")
							}
							before := len(s.requests())
							r := w.send(context.Background(), rt, scheme+project, call, body)
							synctest.Wait()
							got := s.requests()[before:]

							repeated := call.Repeat != failover.Once || test.proven && (test.empty || body != "")
							want := []string{body}
							if repeated {
								want = append(want, body)
							}
							if !slices.Equal(got, want) {
								t.Errorf("%s%s %q, warm %t: requests %q, want %q: %v", scheme, class, body, warm, got, want, r.err)
							}
							if repeated != (r.status == 200) || r.trail.OutcomeUnknown == repeated {
								t.Errorf("%s%s %q, warm %t: %d, outcome unknown %t, %v", scheme, class, body, warm, r.status, r.trail.OutcomeUnknown, r.err)
							}
							if n := len(r.trail.Attempts); n != len(want) {
								t.Errorf("%s%s %q, warm %t: %d attempts, want %d", scheme, class, body, warm, n, len(want))
							}
						})
					}
				}
			}
		})
	}
}

// noRegions makes a project known to have no other region, so that none is asked for.
func (w *world) noRegions(rt *failover.Transport, url string) {
	w.t.Helper()
	if err := rt.ReportRegions(url, nil); err != nil {
		w.t.Fatal(err)
	}
}

// A server that refuses every stream gets one request for each attempt, and the caller knows that nothing took effect.
func TestRefusedEverywhere(t *testing.T) {
	for host, attempts := range map[string]int{project: 3, cloud: 3, own: 1} {
		for class, call := range classes {
			for _, body := range []string{"request", ""} {
				inWorld(t, func(w *world) {
					s := w.serveH2(host, func(c *h2conn, stream uint32, n int) { c.reset(stream, codeRefused) })
					rt := w.secure().transport()
					w.noRegions(rt, "https://"+project)
					r := w.send(context.Background(), rt, "https://"+host, call, body)
					synctest.Wait()
					if n := len(s.requests()); n != attempts || r.err == nil || r.trail.OutcomeUnknown {
						t.Errorf("%s %q to %s: %d requests, want %d: %v", class, body, host, n, attempts, r.err)
					}
				})
			}
		}
	}
}

// keys are headers for which net/http sends a request again after it was written.
var keys = []string{"Idempotency-Key", "X-Idempotency-Key", "idempotency-key", "x-IDEMPOTENCY-key"}

// A server that reads a request on a kept-alive connection and closes it without an answer may have processed it.
func TestStaleConnectionDoesNotDoubleACall(t *testing.T) {
	for _, key := range keys {
		for class, call := range classes {
			for _, host := range []string{project, own} {
				inWorld(t, func(w *world) {
					s := w.serve(host, first(ok, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ok))
					rt := w.transport(failover.WithoutPrefetch())
					known(w, rt, host)
					r := w.withHeader(rt, host, call, key, "one")
					asked := s.asked()[1:]
					want := 1
					if host == project && call.Repeat != failover.Once {
						want = 2
					}
					if len(asked) != want {
						t.Errorf("%s call with %s to %s: %d requests, want %d", class, key, host, len(asked), want)
					}
					if want == 1 && (r.err == nil || !r.trail.OutcomeUnknown) || want == 2 && r.status != 200 {
						t.Errorf("%s call with %s to %s: %d, %v", class, key, host, r.status, r.err)
					}
					if asked[0].from != s.asked()[0].from {
						t.Error("the connection was not reused: nothing was tested")
					}
					for _, a := range asked {
						if got := a.header.Values("Idempotency-Key"); !strings.HasPrefix(strings.ToLower(key), "x-") && !slices.Equal(got, []string{"one"}) {
							t.Errorf("%s arrived as %q", key, got)
						}
						if got := a.header.Values("X-Idempotency-Key"); strings.HasPrefix(strings.ToLower(key), "x-") && !slices.Equal(got, []string{"one"}) {
							t.Errorf("%s arrived as %q", key, got)
						}
					}
				})
			}
		}
	}
}

// withHeader makes a call with one more header, in the spelling given.
func (w *world) withHeader(rt http.RoundTripper, host string, call failover.Call, name, value string) (r reply) {
	w.t.Helper()
	add := roundTripper(func(req *http.Request) (*http.Response, error) {
		req.Header[name] = []string{value}
		return rt.RoundTrip(req)
	})
	return w.post(context.Background(), add, host, call)
}

// A kept-alive connection on which not a byte can be written is a connection that was not there. net/http takes another by
// itself, so a call with a single attempt survives it, and it does so here.
func TestDeadIdleConnectionCostsNothing(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		for _, body := range []string{"request", ""} {
			inWorld(t, func(w *world) {
				s := w.serve(own, ok)
				rt := w.transport()
				for name, through := range map[string]http.RoundTripper{"net/http": w.client, "failover": rt} {
					if r := w.send(context.Background(), through, scheme+own, failover.Call{}, body); r.status != 200 {
						t.Fatal(r.err)
					}
					synctest.Wait()
					before := len(s.asked())
					w.net.Unwritable(own + ":80")
					w.net.Unwritable(own + ":443")
					for class, call := range classes {
						r := w.send(context.Background(), through, scheme+own, call, body)
						if r.status != 200 {
							t.Errorf("%s %s call over %s with %q: %v", name, class, scheme, body, r.err)
						}
					}
					if n := len(s.asked()) - before; n != len(classes) {
						t.Errorf("%s over %s: %d requests, want %d", name, scheme, n, len(classes))
					}
				}
				w.client.CloseIdleConnections()
			})
		}
	}
}

// A middleware that sends a request again by itself gets no second body: it must not pass for net/http.
func TestMiddlewareCannotResend(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve(project, hangUp)
		rt := w.transport(failover.WithoutPrefetch(), failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				resp, err := next.RoundTrip(req)
				if err == nil {
					return resp, nil
				}
				body, again := req.GetBody()
				if again != nil {
					return nil, err
				}
				req = req.Clone(req.Context())
				req.Body = body
				return next.RoundTrip(req)
			})
		}))
		r := w.post(context.Background(), rt, project, failover.Call{Repeat: failover.Once})
		if n := len(s.asked()); n != 1 || r.err == nil || !r.trail.OutcomeUnknown {
			t.Errorf("%d requests, outcome unknown %t, %v", n, r.trail.OutcomeUnknown, r.err)
		}
	})
}

// hangUp reads a request and closes the connection.
func hangUp(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

// A request without a body whose method net/http sends again by itself, over HTTP/1 too, goes out once.
func TestMethodsThatNetHTTPReplays(t *testing.T) {
	for _, name := range []string{"GET", "HEAD", "OPTIONS", "POST"} {
		for _, host := range []string{own, project} {
			inWorld(t, func(w *world) {
				s := w.serve(host, first(ok, broken, ok))
				rt := w.transport(failover.WithoutPrefetch())
				known(w, rt, host)
				ctx := failover.WithCall(context.Background(), &failover.Call{Repeat: failover.Once})
				_, err := rt.RoundTrip(must(http.NewRequestWithContext(ctx, name, "http://"+host+method, nil)))
				if n := len(s.asked()) - 1; n != 1 || err == nil {
					t.Errorf("%s %s: %d requests, %v", name, host, n, err)
				}
			})
		}
	}
}

// An upgrade has a connection with HTTP/1 for itself, which says nothing of those of the calls.
func TestRefusedStreamAfterAnUpgrade(t *testing.T) {
	inWorld(t, func(w *world) {
		w.client.ForceAttemptHTTP2 = true
		w.serveH2(cloud, func(c *h2conn, stream uint32, n int) {
			if n == 2 {
				c.reset(stream, codeRefused)
				return
			}
			c.answer(stream, "served")
		})
		w.serve(project, upgraded)
		rt := w.transport()
		once := failover.Call{Repeat: failover.Once}
		if r := w.post(context.Background(), rt, "https://"+cloud, once); r.status != http.StatusOK {
			t.Fatal(r.err)
		}
		resp, err := rt.RoundTrip(upgradeRequest(context.Background(), "https://"+project+join))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if r := w.post(context.Background(), rt, "https://"+cloud, once); r.status != http.StatusOK {
			t.Errorf("%d, %v: refused unprocessed, and not repeated", r.status, r.err)
		}
	})
}
