package failover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// Each outcome of an attempt, for each repeat class, on each kind of host. testdata/outcomes.json says how it is to be read.

const elsewhere = "elsewhere.example.com" // no request may go there

// outcomeRow is a row of the table.
type outcomeRow struct {
	Outcomes             []string
	Then                 string
	List, Within, Cancel string
	Off                  bool
	Requests             map[string][]string
}

// of returns what the row says of a class, for each of so many kinds of hosts.
func (row *outcomeRow) of(t *testing.T, class string, hosts int) []string {
	t.Helper()
	for classes, cells := range row.Requests {
		switch {
		case !slices.Contains(strings.Fields(classes), class):
		case len(cells) == 1:
			return slices.Repeat(cells, hosts)
		case len(cells) == hosts:
			return cells
		default:
			t.Fatalf("%s: %d texts for %d kinds of hosts", classes, len(cells), hosts)
		}
	}
	if class != "overtaken" {
		t.Fatalf("nothing is said of %s calls", class)
	}
	return row.of(t, "keyed", hosts)
}

// name is that of an outcome, with the row's conditions.
func (row *outcomeRow) name(outcome string) string {
	for _, condition := range [][2]string{{"then", row.Then}, {"list", row.List}, {"within", row.Within}, {"cancel", row.Cancel}} {
		if condition[1] != "" {
			outcome += ", " + condition[0] + " " + condition[1]
		}
	}
	if row.Off {
		outcome += ", off"
	}
	return outcome
}

// expectation is what a call should come to.
type expectation struct {
	requests string // what left the transport, in order
	unknown  bool
	end      string
}

func expect(cell, end string) (want expectation) {
	requests, own, _ := strings.Cut(cell, " -> ")
	want.requests, want.unknown = strings.CutSuffix(requests, " ?")
	if want.end = own; own == "" {
		want.end = end
	}
	return want
}

// recovered is what is to be expected where the first attempt alone meets the outcome: the second one succeeds, if there is one.
func (e expectation) recovered() expectation {
	attempts := 0
	words := strings.Fields(e.requests)
	for i, word := range words {
		if word != "list" {
			attempts++
		}
		if attempts == 2 {
			return expectation{requests: strings.Join(words[:i+1], " "), end: "200"}
		}
	}
	return e
}

func TestOutcomes(t *testing.T) {
	var table struct {
		About, Hosts []string
		Rows         []outcomeRow
	}
	file, err := os.Open("../testdata/outcomes.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	dec := json.NewDecoder(file)
	dec.DisallowUnknownFields() // a condition that is misspelled would be none
	if err := dec.Decode(&table); err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		for _, name := range row.Outcomes {
			name, end, stated := strings.Cut(name, " -> ")
			if !stated { // then it begins with a status
				end, _, _ = strings.Cut(name, " ")
			}
			t.Run(row.name(name), func(t *testing.T) {
				for class, call := range classes {
					cells := row.of(t, class, len(table.Hosts))
					for i, kind := range table.Hosts {
						want := expect(cells[i], end)
						if row.Then != "" {
							row.check(t, kind, class, call, name, row.Then, want)
							continue
						}
						row.check(t, kind, class, call, name, name, want)
						row.check(t, kind, class, call, name, "200", want.recovered())
					}
				}
			})
		}
	}
}

// check makes a call whose attempts meet first and then.
func (row *outcomeRow) check(t *testing.T, kind, class string, call failover.Call, first, then string, want expectation) {
	inWorld(t, func(w *world) {
		what := fmt.Sprintf("%s call, %s host, %s, then %s", class, kind, first, then)
		s := w.stage(kind, first, then, row.List)
		rt := w.transport(failover.Hosts(own, "*."+own), failover.WithoutPrefetch(), failover.Wrap(s.watch))
		if row.List == "known" {
			list := []failover.Region{{URL: s.scheme + s.regions[0]}, {URL: s.scheme + s.regions[1]}}
			if err := rt.ReportRegions(s.scheme+s.home, list); err != nil {
				t.Fatal(err)
			}
		}
		call.Off = row.Off
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		limit := 30 * time.Second // 10 s for each possible attempt
		if row.Within != "" {
			limit = duration(t, row.Within)
			ctx = within(w, limit)
		}
		if row.Cancel != "" {
			limit = duration(t, row.Cancel)
			defer time.AfterFunc(limit, cancel).Stop()
		}
		r := w.post(ctx, rt, s.scheme+s.home, call)

		if got := s.requests(); got != want.requests {
			t.Errorf("%s: requests %q, want %q", what, got, want.requests)
		}
		if !ended(r, want.end) {
			t.Errorf("%s: ended with %d, %v, want %s", what, r.status, r.err, want.end)
		}
		if r.trail.OutcomeUnknown != want.unknown {
			t.Errorf("%s: outcome unknown %t, want %t", what, !want.unknown, want.unknown)
		}
		if r.took > limit {
			t.Errorf("%s: took %v, more than %v", what, r.took, limit)
		}
		s.compare(what, r.trail)
		cancel()
		synctest.Wait()
	})
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ended reports whether a call ended as the table says.
func ended(r reply, end string) bool {
	if code, err := strconv.Atoi(end); err == nil {
		return r.err == nil && r.status == code
	}
	var e *failover.Error
	switch {
	case !errors.As(r.err, &e):
		return false
	case end == "canceled":
		return errors.Is(r.err, context.Canceled) && e.Expired
	case end == "deadline":
		return errors.Is(r.err, context.DeadlineExceeded) && e.Expired
	}
	return !e.Expired && strings.Contains(e.Err.Error(), end)
}

// outcome is what may become of an attempt.
type outcome struct {
	answer http.HandlerFunc                                                    // what the server does, once it has read the request
	dial   func(ctx context.Context, n *memnet, addr string) (net.Conn, error) // instead of the network's; the request is not sent
	h2     func(c *h2conn, stream uint32)                                      // what an HTTP/2 server does
	secure bool
}

var failures = map[string]outcome{
	"no answer": {answer: hang},
	"EOF":       {answer: hangUp},
	"reset": {answer: func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		conn.(*memConn).out.fail(syscall.ECONNRESET)
		conn.Close()
	}},
	"dial refused": {dial: func(_ context.Context, _ *memnet, addr string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: memAddr(addr), Err: syscall.ECONNREFUSED}
	}},
	"dial unanswered": {dial: func(ctx context.Context, _ *memnet, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}},
	"DNS failure": {dial: func(_ context.Context, _ *memnet, addr string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}}
	}},
	"TLS failure": {secure: true, dial: func(ctx context.Context, n *memnet, _ string) (net.Conn, error) {
		return n.DialContext(ctx, "tcp", elsewhere+":443") // whose certificate is not for this name
	}},
	"GOAWAY before the request": {secure: true, h2: func(c *h2conn, stream uint32) { c.goAway(stream-1, codeNone) }},
	"GOAWAY after the request":  {secure: true, h2: func(c *h2conn, stream uint32) { c.goAway(stream, codeInternal); c.Close() }},
}

// outcomeOf reads the name of an outcome: a failure, or a status and what is special about its answer.
func outcomeOf(t *testing.T, name string) outcome {
	t.Helper()
	if o, ok := failures[name]; ok {
		return o
	}
	first, special, _ := strings.Cut(name, " ")
	code, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("no outcome is called %q", name)
	}
	answer := func(header, value, body string) outcome {
		return outcome{answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(code)
			io.WriteString(w, body)
		}}
	}
	switch special {
	case "":
		if code == 200 {
			return outcome{answer: ok}
		}
		return outcome{answer: status(code)}
	case "HTML":
		return answer("Content-Type", "text/html; charset=utf-8", "<html>welcome</html>")
	case "JSON":
		return answer("Content-Type", "application/json", "{}")
	case "without a type":
		return answer("Content-Type", "", "")
	case "truncated":
		return answer("Content-Length", "100", "the first few bytes")
	case "SIP status":
		return answer("Content-Type", "application/json", `{"code":"unavailable","msg":"busy","meta":{"sip_status_code":"486","sip_status":"Busy here"}}`)
	case "to another host":
		return answer("Location", "http://"+elsewhere+method, "")
	case "to another path":
		return answer("Location", "/elsewhere", "")
	}
	value, isRetryAfter := strings.CutPrefix(special, "Retry-After ")
	if !isRetryAfter {
		t.Fatalf("no outcome is called %q", name)
	}
	return answer("Retry-After", value, "later")
}

// stage is a world with a host that a call is made to, two regions of it, and what an attempt there meets.
type stage struct {
	*world
	scheme, home string
	regions      []string
	first, then  outcome
	sites        []*site
	h2           []*h2server

	mu       sync.Mutex
	seen     []string // what left the transport
	attempts []string // the hosts of the attempts among it
	ids      []string // their request ids
}

// stage sets up the hosts and the network, before any transport is made.
func (w *world) stage(kind, first, then, list string) *stage {
	s := &stage{world: w, scheme: "http://", first: outcomeOf(w.t, first), then: outcomeOf(w.t, then)}
	if s.first.secure {
		s.scheme = "https://"
		w.secure()
	}
	s.regions = []string{region1, region2}
	switch kind {
	case "project":
		s.home = project
	case "cloud api":
		s.home = cloud
	case "opted":
		s.home, s.regions = own, []string{"one." + own, "two." + own}
	case "foreign":
		s.home = "foreign.example.com"
	default:
		w.t.Fatalf("no host is called %q", kind)
	}
	for _, host := range append([]string{s.home}, s.regions...) {
		if s.first.h2 != nil {
			s.h2 = append(s.h2, w.serveH2(host, func(c *h2conn, stream uint32, _ int) {
				if o := s.now(); o.h2 != nil {
					o.h2(c, stream)
				} else {
					c.answer(stream, "done")
				}
			}))
			continue
		}
		s.sites = append(s.sites, w.serve(host, func(w http.ResponseWriter, r *http.Request) {
			if o := s.now(); o.answer != nil {
				o.answer(w, r)
			}
		}))
	}
	if len(s.sites) > 0 {
		served := regions("300", s.scheme+s.regions[0], s.scheme+s.regions[1])
		answer, ok := map[string]http.HandlerFunc{"": served, "known": served,
			"none": status(404), "fails": status(500), "hangs": hang}[list]
		if !ok {
			w.t.Fatalf("no region list is called %q", list)
		}
		s.sites[0].setList(answer)
	}
	w.serve(elsewhere, ok)
	w.client.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if o := s.now(); o.dial != nil {
			return o.dial(ctx, w.net, addr)
		}
		return w.net.DialContext(ctx, network, addr)
	}
	return s
}

// now is what the newest attempt meets.
func (s *stage) now() outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attempts) < 2 {
		return s.first
	}
	return s.then
}

// watch notes what leaves the transport.
func (s *stage) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		host := req.URL.Host
		if i := slices.Index(append([]string{s.home}, s.regions...), host); i >= 0 {
			host = []string{"home", "one", "two"}[i]
		}
		s.mu.Lock()
		switch {
		case req.URL.Path == method:
			s.seen = append(s.seen, host)
			s.attempts = append(s.attempts, s.scheme+req.URL.Host)
			s.ids = append(s.ids, req.Header.Get(failover.RequestIDHeader))
		case req.Method == http.MethodGet && req.URL.Path == "/settings/regions" && host == "home":
			s.seen = append(s.seen, "list")
		default:
			s.seen = append(s.seen, req.Method+" "+req.URL.String())
		}
		s.mu.Unlock()
		return next.RoundTrip(req)
	})
}

func (s *stage) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, " ")
}

// compare demands that the trail, the transport and the servers tell the same story.
func (s *stage) compare(what string, trail failover.Trail) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var origins []string
	for _, a := range trail.Attempts {
		origins = append(origins, a.Origin)
	}
	if !slices.Equal(origins, s.attempts) {
		s.t.Errorf("%s: the trail tells of attempts at %q, made were %q", what, origins, s.attempts)
	}
	if n := len(trail.Attempts); n > 0 && trail.Attempts[n-1].Number != max(n-trail.Pinned, 1) {
		s.t.Errorf("%s: the last of %d attempts has the number %d, after %d steps of a 451",
			what, n, trail.Attempts[n-1].Number, trail.Pinned)
	}
	for _, id := range s.ids {
		if id == "" || id != trail.RequestID {
			s.t.Errorf("%s: a request had the id %q, the trail says %q", what, id, trail.RequestID)
		}
	}
	sent, got := len(s.attempts), 0
	switch {
	case s.first.dial != nil && s.then.dial != nil:
		sent = 0
	case s.first.dial != nil:
		sent--
	}
	for _, site := range s.sites {
		got += len(site.asked())
	}
	for _, server := range s.h2 {
		got += len(server.requests())
	}
	if got != sent {
		s.t.Errorf("%s: %d requests arrived, want %d", what, got, sent)
	}
}
