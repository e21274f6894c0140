// Package cloud is a LiveKit Cloud of which nothing exists but CreateDispatch and the region list, and which is cheap: what a
// comparison of clients measures should be the clients. It has three regions, each on the loopback interface in three ways: plain
// HTTP/1.1, HTTP/1.1 over TLS, HTTP/2.
package cloud

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
)

// hosts are the regions in the order of the list.
var hosts = []string{bench.Home, "demo.frankfurt.production.livekit.cloud", "demo.tokyo.production.livekit.cloud"}

// Cloud is a running fake. Safe for concurrent use.
type Cloud struct {
	site    bench.Site
	strict  bool
	regions []*region
	servers []*server

	mu     sync.Mutex
	stats  Stats // but for the requests, which the regions count
	tokens map[string]bool
	conns  map[net.Conn]*server
}

// server is one way to one region.
type server struct {
	http.Server
	region *region
	listen net.Listener
}

// Stats are counts since the start.
type Stats struct {
	Requests []int64 // API calls that arrived, by region
	Lists    int64   // reads of the region list
	Opened   int     // connections
	Open     int     // those still open
	Bad      int     // requests that no right client sends
	Worst    string  // what was wrong with the first of them
	Tokens   int     // different tokens; counted if strict
}

// Start starts a cloud. Strict: tokens and host names are checked and tokens counted, which costs time.
func Start(strict bool) (*Cloud, error) {
	cert, ca, err := certify(hosts)
	if err != nil {
		return nil, err
	}
	c := &Cloud{strict: strict, tokens: make(map[string]bool), conns: make(map[net.Conn]*server)}
	c.site = bench.Site{
		Hosts: make(map[bench.Proto]map[string]string), CA: ca,
		Key: "APIfake", Secret: "a-secret-that-protects-nothing-but-benchmarks", Room: "room",
	}
	if c.site.Token, err = newToken(c.site.Key, c.site.Secret, c.site.Room); err != nil {
		return nil, err
	}
	for _, host := range hosts {
		r := &region{cloud: c, host: host}
		r.fault.Store(new(Fault))
		c.regions = append(c.regions, r)
		for _, p := range bench.Protos() {
			if err := c.serve(r, p, cert); err != nil {
				c.Close()
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *Cloud) serve(r *region, p bench.Proto, cert tls.Certificate) error {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &server{region: r, listen: listen}
	s.Handler, s.Protocols, s.ErrorLog = r, &http.Protocols{}, log.New(io.Discard, "", 0)
	s.Protocols.SetHTTP1(p != bench.HTTP2)
	s.Protocols.SetHTTP2(p == bench.HTTP2)
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.ConnState = func(conn net.Conn, state http.ConnState) { c.track(s, conn, state) }
	if c.site.Hosts[p] == nil {
		c.site.Hosts[p] = make(map[string]string)
	}
	c.site.Hosts[p][r.host] = listen.Addr().String()
	c.servers = append(c.servers, s)
	if p == bench.Plain {
		go s.Serve(listen)
	} else {
		go s.ServeTLS(listen, "", "")
	}
	return nil
}

func (c *Cloud) track(s *server, conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.stats.Opened++
		c.conns[conn] = s
	case http.StateClosed, http.StateHijacked:
		delete(c.conns, conn)
	}
}

func (c *Cloud) bad(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stats.Bad++; c.stats.Bad == 1 {
		c.stats.Worst = err.Error()
	}
}

// Site is how to reach it.
func (c *Cloud) Site() bench.Site { return c.site }

// Break gives a region a fault.
func (c *Cloud) Break(region int, f Fault) error {
	if region < 0 || region >= len(c.regions) {
		return fmt.Errorf("cloud: there is no region %d", region)
	}
	r := c.regions[region]
	r.fault.Store(&f)
	if f != Dead {
		return nil
	}
	for _, s := range c.servers {
		if s.region == r {
			s.listen.Close()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, s := range c.conns {
		if s.region == r {
			reset(conn)
		}
	}
	return nil
}

// reset ends a connection as the end of a process does when bytes are on their way.
func reset(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// Stats returns the counts.
func (c *Cloud) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Open, s.Tokens = len(c.conns), len(c.tokens)
	for _, r := range c.regions {
		s.Requests = append(s.Requests, r.requests.Load())
		s.Lists += r.lists.Load()
	}
	return s
}

// Close ends it.
func (c *Cloud) Close() {
	for _, s := range c.servers {
		s.Close()
	}
}
