package failover_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// Connections are kept and shared, and a user's *http.Transport stays as it is.

// counted counts the connections that a server accepts.
type counted struct {
	net.Listener
	n atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// 1,000 calls in bursts of 50: net/http's own two idle connections per host would make each burst dial anew.
func TestBurstsShareConnections(t *testing.T) {
	for name, next := range map[string]http.RoundTripper{"the default transport": nil, "a plain *http.Transport": &http.Transport{}} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(ok))
			listener := &counted{Listener: server.Listener}
			server.Listener = listener
			server.Start()
			defer server.Close()
			rt, err := failover.New(next, failover.Hosts("127.0.0.1"))
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			for range 20 {
				var burst sync.WaitGroup
				for range 50 {
					burst.Go(func() {
						req, _ := http.NewRequest(http.MethodPost, server.URL+method, strings.NewReader("request"))
						req.Header.Set("Content-Type", protobuf)
						resp, err := rt.RoundTrip(req)
						if err != nil {
							t.Error(err)
							return
						}
						resp.Body.Close()
					})
				}
				burst.Wait()
			}
			if n := listener.n.Load(); n > 60 {
				t.Errorf("1,000 calls made %d connections, want at most 60", n)
			}
		})
	}
}

// exported returns the exported fields of a transport, functions by address.
func exported(tr *http.Transport) map[string]any {
	fields := map[string]any{}
	v := reflect.ValueOf(tr).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		switch value := v.Field(i); {
		case value.Kind() == reflect.Func:
			fields[f.Name] = value.Pointer()
		case value.Kind() == reflect.Pointer && !value.IsNil():
			fields[f.Name] = value.Elem().Interface()
		default:
			fields[f.Name] = value.Interface()
		}
	}
	return fields
}

func TestUsersTransportIsNotChanged(t *testing.T) {
	proxy := func(*http.Request) (*url.URL, error) { return nil, nil }
	inWorld(t, func(w *world) {
		w.serve(project, ok)
		for name, mine := range map[string]*http.Transport{
			"with settings": {Proxy: proxy, DialContext: w.net.DialContext, MaxIdleConnsPerHost: 7, IdleConnTimeout: time.Minute,
				HTTP2: &http.HTTP2Config{MaxReadFrameSize: 1 << 15, PingTimeout: 3 * time.Second}, ResponseHeaderTimeout: time.Hour,
				ProxyConnectHeader: http.Header{"A": {"b"}}},
			"without HTTP/2": {DialContext: w.net.DialContext, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}},
			"plain":          {DialContext: w.net.DialContext},
		} {
			before := exported(mine)
			rt := w.over(mine)
			if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 {
				t.Errorf("%s: %d, %v", name, r.status, r.err)
			}
			after := exported(mine)
			for field, value := range before {
				if !reflect.DeepEqual(value, after[field]) {
					t.Errorf("%s: %s was %v and is %v", name, field, value, after[field])
				}
			}
		}
	})
}

// Closing a Transport leaves the connections of the user's transport alone.
func TestUsersConnectionsAreLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve(project, ok)
		w.post(context.Background(), w.client, project, failover.Call{})
		rt := w.transport()
		known(w, rt, project)
		rt.Close()
		w.post(context.Background(), w.client, project, failover.Call{})
		asked := s.asked()
		if len(asked) != 3 || asked[0].from != asked[2].from || asked[0].from == asked[1].from {
			t.Errorf("the user's transport does not have its own connection any more: %d requests", len(asked))
		}
		w.client.CloseIdleConnections()
	})
}

// HTTP/2 is on over a clone where it is on over the original, and off where it is off, whether that was in use or not.
func TestHTTP2OverAClone(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobuf)
		w.Write([]byte(r.Proto))
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(project)}}
	server.Config.ErrorLog = quiet
	server.StartTLS()
	defer server.Close()

	// trust makes a transport accept the test's authority. It changes a clone that has its protocols already.
	trust := func(rt http.RoundTripper) http.RoundTripper {
		c := rt.(*http.Transport).TLSClientConfig
		c.RootCAs, c.ServerName = authority().pool, project
		return rt
	}
	none := map[string]func(string, *tls.Conn) http.RoundTripper{}
	only1, both := new(http.Protocols), new(http.Protocols)
	only1.SetHTTP1(true)
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	for name, test := range map[string]struct {
		next *http.Transport
		want string
	}{
		"default":               {nil, "HTTP/2.0"},
		"net/http's default":    {http.DefaultTransport.(*http.Transport), "HTTP/2.0"},
		"plain":                 {&http.Transport{}, "HTTP/2.0"},
		"a dialer":              {&http.Transport{DialContext: new(net.Dialer).DialContext, TLSClientConfig: new(tls.Config)}, "HTTP/1.1"},
		"a dialer, forced":      {&http.Transport{DialContext: new(net.Dialer).DialContext, ForceAttemptHTTP2: true}, "HTTP/2.0"},
		"by protocols":          {&http.Transport{TLSClientConfig: new(tls.Config), Protocols: both}, "HTTP/2.0"},
		"HTTP/1 by protocols":   {&http.Transport{TLSClientConfig: new(tls.Config), Protocols: only1}, "HTTP/1.1"},
		"switched off by a map": {&http.Transport{TLSClientConfig: new(tls.Config), ForceAttemptHTTP2: true, TLSNextProto: none}, "HTTP/1.1"},
	} {
		for _, used := range []bool{false, true} {
			var next http.RoundTripper
			if test.next != nil {
				next = test.next
				if used {
					test.next.RoundTrip(must(http.NewRequest(http.MethodGet, "https://127.0.0.1:0", nil))) // as far as a dial
				}
			}
			rt, err := failover.New(next, failover.Wrap(trust))
			if err != nil {
				t.Fatal(err)
			}
			req := must(http.NewRequest(http.MethodPost, server.URL+method, strings.NewReader("request")))
			req.Header.Set("Content-Type", protobuf)
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Errorf("%s, used %t: %v", name, used, err)
			} else if resp.Proto != test.want {
				t.Errorf("%s, used %t: %s, want %s", name, used, resp.Proto, test.want)
			}
			rt.Close()
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What the owner of a transport left at zero gets this package's values; what was set stays.
func TestClonesSettings(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(project, ok)
		for _, test := range []struct {
			idle time.Duration // of the user's
			want time.Duration
		}{{0, 45 * time.Second}, {10 * time.Second, 10 * time.Second}} {
			rt := w.over(&http.Transport{DialContext: w.net.DialContext, IdleConnTimeout: test.idle})
			known(w, rt, project)
			open := w.net.Open()
			pass(test.want - time.Second)
			if n := w.net.Open(); n != open || open == 0 {
				t.Errorf("with IdleConnTimeout %v: %d connections of %d are left before %v", test.idle, n, open, test.want)
			}
			pass(2 * time.Second)
			if n := w.net.Open(); n != 0 {
				t.Errorf("with IdleConnTimeout %v: %d connections are left after %v", test.idle, n, test.want)
			}
		}
	})
}

// A nil *http.Transport in an interface is a mistake that is told at once.
func TestNilTransports(t *testing.T) {
	var none *http.Transport
	if rt, err := failover.New(none); err == nil || rt != nil || !strings.Contains(err.Error(), "nil") {
		t.Errorf("New(nil *http.Transport) = %v, %v", rt, err)
	}
	rt, err := failover.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	rt.Close()
}

// Wrap's function is called for the first connections and for each fresh set, and sees every attempt.
func TestWrapSeesEveryAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(cloud, first(ok, hangUp, hangUp, ok))
		var made, sent atomic.Int64
		rt := w.transport(failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
			made.Add(1)
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				sent.Add(1)
				if httptrace.ContextClientTrace(req.Context()) == nil {
					t.Error("an attempt is not traced")
				}
				return next.RoundTrip(req)
			})
		}))
		known(w, rt, cloud)
		if r := w.post(context.Background(), rt, cloud, failover.Call{}); r.status != 200 {
			t.Errorf("%d, %v", r.status, r.err)
		}
		if made.Load() != 3 || sent.Load() != 4 {
			t.Errorf("Wrap was called %d times, want 3; it saw %d attempts, want 4", made.Load(), sent.Load())
		}
	})
}

// What was in use when its origin got new connections, or when the Transport was closed, is closed when it is not needed any more:
// net/http does that by itself for HTTP/1 alone.
func TestConnectionsInUseAreClosedLater(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		for _, end := range []string{"renewed", "renewed, then closed", "closed"} {
			inWorld(t, func(w *world) {
				slow := after(20*time.Second, ok)
				s := w.serve(cloud, func(rw http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Slow") != "" {
						slow(rw, r)
						return
					}
					ok(rw, r)
				})
				rt := w.secure().transport()
				renew := func() {
					s.set(first(hangUp, s.answer))
					if r := w.post(context.Background(), rt, scheme+cloud, classes["safe"]); r.status != 200 || len(r.trail.Attempts) != 2 {
						t.Errorf("%d, %v after %d attempts", r.status, r.err, len(r.trail.Attempts))
					}
				}
				known(w, rt, scheme+cloud)
				renew() // off the connections that Close knows anyway
				done := make(chan reply)
				go func() {
					done <- w.withHeader(rt, scheme+cloud, failover.Call{Repeat: failover.Once}, "X-Slow", "yes")
				}()
				pass(time.Second)
				if end != "closed" {
					renew()
				}
				if end != "renewed" {
					rt.Close()
				}
				if r := <-done; r.status != 200 {
					t.Errorf("%s %s: the slow call: %d, %v", scheme, end, r.status, r.err)
				}
				if end == "renewed" {
					rt.Close()
				}
				pass(2 * time.Second)
				if n := w.net.Open(); n > 0 {
					t.Errorf("%s %s: %d connections are left", scheme, end, n)
				}
			})
		}
	}
}
