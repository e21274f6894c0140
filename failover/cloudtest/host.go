package cloudtest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Host is one server of the Cloud, under a name of its own: a region, an API host, or one that AddHost added. All of them serve
// the same rooms and dispatches. Safe for concurrent use.
type Host struct {
	cloud  *Cloud
	name   string
	region string // empty for those outside the region list
	server *http.Server
	doors  map[string]*door // by port

	gates connSet[*gate]   // the clients' ends
	conns connSet[*served] // the server's ends

	mu     sync.Mutex
	breaks []*Break // the newest last
	dials  []*Dial
}

type connKey struct{}

func newHost(c *Cloud, name, region string) (*Host, error) {
	cert, err := c.ca.certify(name)
	if err != nil {
		return nil, err
	}
	h := &Host{cloud: c, name: name, region: region, doors: make(map[string]*door)}
	ports := []string{"443"}
	if c.plainHTTP {
		ports = append(ports, "80")
	}
	for _, port := range ports {
		d, err := newDoor(h, port, c.inMemory)
		if err != nil {
			for _, open := range h.doors {
				open.Close()
			}
			return nil, err
		}
		h.doors[port] = d
	}
	h.server = &http.Server{
		Handler:     http.HandlerFunc(h.handle),
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: c.nextProtos()},
		Protocols:   c.protocols(),
		BaseContext: func(net.Listener) context.Context { return c.base },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, servedBy(conn))
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			switch s := servedBy(conn); state {
			case http.StateActive:
				c.record.active(s)
			case http.StateIdle:
				if isHTTP2(conn) {
					c.record.ended(s)
				} else {
					c.record.idle(s)
				}
			}
		},
		ErrorLog: log.New(io.Discard, "", 0), // handshakes that a fault or a client broke off
	}
	return h, nil
}

func (h *Host) serve() {
	for port, d := range h.doors {
		h.cloud.serving.Go(func() {
			if port == "443" {
				h.server.ServeTLS(d, "", "")
				return
			}
			h.server.Serve(d)
		})
	}
}

// close ends the host: what it served is cut, and what a fault holds is let go.
func (h *Host) close() {
	for _, d := range h.doors {
		d.Close()
	}
	h.server.Close()
	for _, s := range h.conns.all() { // those that were taken over too
		s.Close()
	}
	for _, b := range h.broken() {
		b.Clear()
	}
}

// Name returns the host's name: "demo.livekit.cloud".
func (h *Host) Name() string { return h.name }

// RegionName returns the name of the host's region, or "" for a host that is none.
func (h *Host) RegionName() string { return h.region }

// URL returns where the host is reached: "https://demo.livekit.cloud".
func (h *Host) URL() string {
	if strings.Contains(h.name, ":") { // IPv6
		return h.cloud.scheme() + "://[" + h.name + "]"
	}
	return h.cloud.scheme() + "://" + h.name
}

// String returns the host's name.
func (h *Host) String() string { return h.name }

// answer is what the host does with a request that no fault keeps from it.
func (h *Host) answer(rep *reply, r *http.Request) {
	path := r.URL.Path
	switch {
	case strings.Contains(path, API):
		if h.pinnedElsewhere() {
			http.Error(rep, "unavailable for legal reasons", http.StatusUnavailableForLegalReasons)
			return
		}
		h.cloud.api.ServeHTTP(rep, r)
	case isRTC(path):
		if h.pinnedElsewhere() {
			http.Error(rep, "the project may not use this region", http.StatusForbidden)
			return
		}
		h.answerRTC(rep, r)
	case path == RegionList && h.region != "":
		h.answerRegions(rep, r)
	case path == "/":
		io.WriteString(rep, "OK")
	default:
		http.NotFound(rep, r)
	}
}
