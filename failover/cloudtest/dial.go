package cloudtest

import (
	"context"
	"net"
	"strings"
	"syscall"
	"time"
)

// Dial is one attempt to connect to a Host.
type Dial struct {
	Time    time.Time // when it began
	Address string    // as it was dialled: "demo.livekit.cloud:443"
	Err     error     // why there is no connection; nil with one, and while it is not decided
}

// DialContext connects to a host of the Cloud by its name, as a net.Dialer would over a network that has only these hosts. It
// is what the Transport dials with; give it to clients of other kinds, such as a WebSocket library.
//
// A name that the Cloud does not have fails like one that DNS does not know, and is kept: see Strays. A port other than 443
// (and 80 with PlainHTTP) is refused. The network faults of the host apply.
func (c *Cloud) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, dialError(network, err)
	}
	h := c.lookUp(name)
	if h == nil {
		c.mu.Lock()
		c.strays = append(c.strays, address)
		c.mu.Unlock()
		return nil, dialError(network, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true})
	}
	note := h.noteDial(address)
	conn, err := h.dial(ctx, port)
	if err != nil {
		err = dialError(network, err)
		note(err)
		return nil, err
	}
	return conn, nil
}

func dialError(network string, err error) error {
	return &net.OpError{Op: "dial", Net: network, Err: err}
}

// lookUp finds a host as DNS would: case and a trailing dot do not count.
func (c *Cloud) lookUp(name string) *Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[strings.ToLower(strings.TrimSuffix(name, "."))]
}

// dial connects to a port of the host, if the network lets it.
func (h *Host) dial(ctx context.Context, port string) (net.Conn, error) {
	for {
		b := h.networkFault()
		if b == nil {
			break
		}
		if b.dialErr != nil {
			return nil, b.dialErr
		}
		select {
		case <-b.over: // the packets of a patient client get through in the end
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-h.cloud.base.Done():
			return nil, syscall.ECONNREFUSED
		}
	}
	d := h.doors[port]
	if d == nil || h.cloud.base.Err() != nil {
		return nil, refused
	}
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	g := newGate(conn, h)
	h.gates.add(g)
	return g, nil
}

// Dials returns the attempts to connect to the host, in the order they began.
func (h *Host) Dials() []Dial {
	h.mu.Lock()
	defer h.mu.Unlock()
	dials := make([]Dial, len(h.dials))
	for i, d := range h.dials {
		dials[i] = *d
	}
	return dials
}

// noteDial records a dial. The function returned records how it failed.
func (h *Host) noteDial(address string) func(error) {
	d := &Dial{Time: time.Now(), Address: address}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dials = append(h.dials, d)
	return func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		d.Err = err
	}
}

// Strays returns the addresses that were dialled although no host of the Cloud has the name, in order. A test that expects
// requests to stay inside the Cloud wants it to be empty.
func (c *Cloud) Strays() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.strays...)
}
