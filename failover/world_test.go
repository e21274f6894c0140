package failover_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

const (
	project = "proj.livekit.cloud" // the configured host of most tests
	region1 = "one.livekit.cloud"
	region2 = "two.livekit.cloud"
	region3 = "three.livekit.cloud"
	cloud   = "cloud-api.livekit.io"
	own     = "sfu.example.com" // a host of one's own, foreign unless named by Hosts

	method   = "/twirp/livekit.RoomService/ListRooms"
	protobuf = "application/protobuf"
)

// world is a synctest bubble with a network, servers on it and a client's *http.Transport.
type world struct {
	t      *testing.T
	net    *memnet
	client *http.Transport
	sites  map[string]*site

	mu   sync.Mutex
	busy map[net.Conn]bool // servers' ends of connections with a request on them
}

// inWorld runs a test in a world of its own. When the test is over nothing of the engine may be left: no goroutine, and after
// Close no connection.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newMemnet()
		w := &world{t: t, net: n, sites: map[string]*site{}, busy: map[net.Conn]bool{}}
		w.client = &http.Transport{DialContext: n.DialContext, TLSClientConfig: &tls.Config{RootCAs: authority().pool}}
		test(w)
		for _, s := range w.sites {
			for _, server := range s.servers {
				server.Close()
			}
		}
	})
}

// transport makes a Transport over the network, closed at the end of the test, when nothing of it may be left.
func (w *world) transport(opts ...failover.Option) *failover.Transport {
	w.t.Helper()
	return w.over(w.client, opts...)
}

func (w *world) over(next http.RoundTripper, opts ...failover.Option) *failover.Transport {
	w.t.Helper()
	rt, err := failover.New(next, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		rt.Close()
		w.idle()
		if open, dials := w.net.Open(), w.net.Dialling(); open > 0 || dials > 0 {
			w.t.Errorf("%d connections and %d dials are left after Close", open, dials)
		}
	})
	return rt
}

// idle demands that no goroutine of the engine is left, and no connection with a request on it: those that are open wait in the
// pool for the next call. (A dial goes on when its call is over, for the calls to come, until it ends by itself or by Close.)
func (w *world) idle() {
	w.t.Helper()
	synctest.Wait()
	if left := engineGoroutines(); len(left) > 0 {
		w.t.Errorf("%d goroutines are left, the first:\n%s", len(left), left[0])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.busy); n > 0 {
		w.t.Errorf("%d connections are left with a request on them", n)
	}
}

// follow is told what becomes of a server's connection. A hijacked one is its handler's.
func (w *world) follow(conn net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state == http.StateActive {
		w.busy[conn] = true
	} else {
		delete(w.busy, conn)
	}
}

var bubble = regexp.MustCompile(`synctest bubble \d+`)

// engineGoroutines returns the stacks of this bubble's goroutines, beside the calling one, that are in the engine.
func engineGoroutines() []string { return goroutinesIn("lkrpc/failover.") }

// goroutinesIn returns the stacks of this bubble's goroutines, beside the calling one, that are in a function of that name or were
// started by one.
func goroutinesIn(name string) []string {
	buf := make([]byte, 64<<10)
	for n := 0; n < len(buf); buf = make([]byte, 2*len(buf)) {
		if n = runtime.Stack(buf, true); n < len(buf) {
			buf = buf[:n]
			break
		}
	}
	stacks := strings.Split(string(buf), "\n\n")
	mine := bubble.FindString(stacks[0])
	var left []string
	for _, s := range stacks[1:] {
		header, _, _ := strings.Cut(s, "\n")
		if bubble.FindString(header) == mine && strings.Contains(s, name) {
			left = append(left, s)
		}
	}
	return left
}

// site is a server and what it was asked.
type site struct {
	host    string
	servers []*http.Server

	mu     sync.Mutex
	answer http.HandlerFunc
	list   http.HandlerFunc
	calls  []asked
	lists  []asked
}

// asked is a request as a server saw it.
type asked struct {
	at         time.Time
	path, id   string
	body       string
	header     http.Header
	from, host string
}

// quiet is a server's log that nobody wants to read: tests break connections on purpose.
var quiet = log.New(io.Discard, "", 0)

// serve starts a server for a host name, on port 80 in plain HTTP and on 443 in TLS with HTTP/2. Without setList it has no
// region list.
func (w *world) serve(host string, answer http.HandlerFunc) *site {
	s := &site{host: host, answer: answer, list: status(404)}
	plain := &http.Server{Handler: s, ErrorLog: quiet, ConnState: w.follow}
	secure := &http.Server{Handler: s, ErrorLog: quiet, ConnState: w.follow,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate(host)}}}
	s.servers = []*http.Server{plain, secure}
	go plain.Serve(w.net.Listen(host + ":80"))
	go secure.ServeTLS(w.net.Listen(host+":443"), "", "")
	w.sites[host] = s
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a := asked{time.Now(), r.URL.RequestURI(), r.Header.Get(failover.RequestIDHeader), string(body), r.Header, r.RemoteAddr, r.Host}
	s.mu.Lock()
	answer := s.answer
	if r.URL.Path == "/settings/regions" {
		answer = s.list
		s.lists = append(s.lists, a)
	} else {
		s.calls = append(s.calls, a)
	}
	s.mu.Unlock()
	answer(w, r)
}

func (s *site) set(answer http.HandlerFunc) {
	s.mu.Lock()
	s.answer = answer
	s.mu.Unlock()
}

func (s *site) setList(list http.HandlerFunc) {
	s.mu.Lock()
	s.list = list
	s.mu.Unlock()
}

// asked returns the calls that the site saw.
func (s *site) asked() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]asked(nil), s.calls...)
}

// listed returns the requests for its region list.
func (s *site) listed() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]asked(nil), s.lists...)
}

// requests counts the calls that each site saw, in the order given.
func requests(sites ...*site) []int {
	var n []int
	for _, s := range sites {
		n = append(n, len(s.asked()))
	}
	return n
}

// Answers.

func ok(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	io.WriteString(w, "from "+r.Host)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		io.WriteString(w, `{"code":"code","msg":"said `+http.StatusText(code)+`"}`)
	}
}

// hang answers nothing until the client goes.
func hang(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler) // else it would answer 200, which may arrive just before the connection is closed
}

// after answers when the time has passed, unless the client has gone by then.
func after(d time.Duration, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			then(w, r)
		case <-r.Context().Done():
		}
	}
}

// first answers the n-th request with the n-th handler, all later ones with the last.
func first(handlers ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	var n int
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handlers[min(n, len(handlers)-1)]
		n++
		mu.Unlock()
		h(w, r)
	}
}

// regions answers with a region list of plain HTTP URLs.
func regions(maxAge string, hosts ...string) http.HandlerFunc {
	type entry struct {
		Region   string `json:"region"`
		URL      string `json:"url"`
		Distance string `json:"distance"`
	}
	list := []entry{}
	for _, h := range hosts {
		if !strings.Contains(h, "://") {
			h = "http://" + h
		}
		list = append(list, entry{h, h, "1"})
	}
	body, _ := json.Marshal(map[string]any{"regions": list})
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if maxAge != "" {
			w.Header().Set("Cache-Control", "max-age="+maxAge)
		}
		w.Write(body)
	}
}

// reply is what a call came to.
type reply struct {
	status int
	body   string
	err    error
	trail  failover.Trail
	took   time.Duration
}

// post makes one API call to a host, over plain HTTP unless a scheme is given.
func (w *world) post(ctx context.Context, rt http.RoundTripper, host string, call failover.Call) reply {
	w.t.Helper()
	return w.send(ctx, rt, host, call, "request")
}

func (w *world) send(ctx context.Context, rt http.RoundTripper, host string, call failover.Call, body string) reply {
	w.t.Helper()
	var r reply
	call.Trail = &r.trail
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	req, err := http.NewRequestWithContext(failover.WithCall(ctx, &call), http.MethodPost, host+method, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", protobuf)
	req.Header.Set("Authorization", "Bearer "+token)
	start := time.Now()
	resp, err := rt.RoundTrip(req)
	r.took, r.err = time.Since(start), err
	if (resp == nil) == (err == nil) {
		w.t.Errorf("RoundTrip returned %v and %v: want exactly one", resp, err)
	}
	if resp != nil {
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		r.status, r.body = resp.StatusCode, string(text)
		if err != nil {
			w.t.Errorf("reading the answer: %v", err)
		}
	}
	return r
}

// within returns a context with a deadline.
func within(w *world, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	w.t.Cleanup(cancel)
	return ctx
}

// pass lets time go by.
func pass(d time.Duration) { <-time.After(d) }

// token is shaped like an access token.
const token = "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJrZXkiLCJzdWIiOiJtZSJ9.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"

// Certificates.

type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool

	mu     sync.Mutex
	leaves map[string]tls.Certificate
}

var authority = sync.OnceValue(func() *ca {
	a := &ca{pool: x509.NewCertPool(), leaves: map[string]tls.Certificate{}}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := lifetime("test authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		panic(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.pool.AddCert(a.cert)
	return a
})

// lifetime is a certificate that is valid in a bubble, whose clock starts in 2000.
func lifetime(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// certificate returns one for a host name, signed by the test's authority.
func certificate(host string) tls.Certificate {
	a := authority()
	a.mu.Lock()
	defer a.mu.Unlock()
	if leaf, ok := a.leaves[host]; ok {
		return leaf
	}
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := lifetime(host)
	template.DNSNames = []string{host}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		panic(err)
	}
	a.leaves[host] = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return a.leaves[host]
}
