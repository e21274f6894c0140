package failover_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/internal/rttest"
)

// The contract of http.RoundTripper, over real TLS on the loopback interface. Whatever path a request has and however often it is
// repeated, its maker sees nothing of that but the answer.
func TestContract(t *testing.T) {
	const connect, other = "/rtc/v1/validate?access_token=" + token, "/anything"
	for name, b := range map[string]bench{
		"API call, HTTP/1.1":               {path: method, repeats: true},
		"API call, HTTP/2":                 {path: method, repeats: true, http2: true},
		"API call to a healthy host":       {path: method, opts: []failover.Option{failover.Hosts("127.0.0.1")}},
		"API call, off, HTTP/1.1":          {path: method, opts: []failover.Option{failover.Off(), failover.Hosts("127.0.0.1")}},
		"API call, off, HTTP/2":            {path: method, opts: []failover.Option{failover.Off()}, http2: true},
		"API call over a middleware":       {path: method, repeats: true, foreign: true},
		"connection, HTTP/1.1":             {path: connect, repeats: true},
		"connection, HTTP/2":               {path: connect, repeats: true, http2: true},
		"connection, off":                  {path: connect, opts: []failover.Option{failover.Off()}},
		"connection over a middleware":     {path: connect, repeats: true, foreign: true, http2: true},
		"another path, HTTP/1.1":           {path: other, opts: []failover.Option{failover.Hosts("127.0.0.1")}},
		"another path, HTTP/2":             {path: other, http2: true},
		"another path over a middleware":   {path: other, foreign: true},
		"another path, wrapped":            {path: other, opts: []failover.Option{failover.Wrap(passOn)}},
		"API call, wrapped":                {path: method, repeats: true, http2: true, opts: []failover.Option{failover.Wrap(passOn)}},
		"API call with origins of its own": {path: method, repeats: true, origins: true},
	} {
		t.Run(name, func(t *testing.T) { rttest.Run(t, b.start) })
	}
}

// passOn is a middleware that does nothing.
func passOn(next http.RoundTripper) http.RoundTripper { return roundTripper(next.RoundTrip) }

// bench is what a Transport is tested on.
type bench struct {
	path    string
	http2   bool
	repeats bool // the configured origin fails, so that each request is repeated in a region
	origins bool // which is known by option Origins, not by a region list
	foreign bool // attempts go through a RoundTripper that is no *http.Transport
	opts    []failover.Option
}

func (b bench) start(t testing.TB, handler http.Handler) rttest.Site {
	var asked, failed atomic.Int64
	served := b.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/settings/regions" {
			http.NotFound(w, r)
			return
		}
		if asked.Add(1); (r.ProtoMajor == 2) != b.http2 {
			t.Errorf("asked by %s", r.Proto)
		}
		handler.ServeHTTP(w, r)
	}))
	opts, at := b.opts, served.URL
	if b.repeats {
		home := b.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/settings/regions" {
				regions("60", served.URL)(w, r)
				return
			}
			failed.Add(1)
			status(503)(w, r)
		}))
		at = home.URL
		opts = append(opts, failover.Hosts("127.0.0.1"))
		if b.origins {
			opts = append(opts, failover.Origins(served.URL))
		}
		t.Cleanup(func() {
			if asked.Load() > 0 && failed.Load() == 0 {
				t.Error("no attempt failed: nothing was repeated")
			}
		})
	}
	rt, err := failover.New(b.through(t, served.Certificate()), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	dead := "127.0.0.1"
	if b.origins {
		dead = "127.0.0.2" // which these are no origins of
	}
	return rttest.Site{RoundTripper: rt, URL: at + b.path, Dead: "https://" + rttest.Vacant(t, dead) + b.path, Close: rt.Close}
}

// serve starts a server of this bench.
func (b bench) serve(t testing.TB, handler http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = b.http2
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// through is what attempts go through. All servers of httptest have the same certificate.
func (b bench) through(t testing.TB, cert *x509.Certificate) http.RoundTripper {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: b.http2}
	if !b.foreign {
		return tr
	}
	t.Cleanup(tr.CloseIdleConnections)
	return passOn(tr)
}
