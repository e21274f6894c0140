package failover_test

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// memnet is a network in memory whose connections can be broken in the ways that real ones break. Its connections are
// buffered, since on net.Pipe a peer that stops reading stops the writer, and in a synctest bubble the clock with it.
type memnet struct {
	mu        sync.Mutex
	listeners map[string]*memListener
	blackhole map[string]bool
	delay     map[string]time.Duration
	conns     map[*memConn]bool // client ends, until closed
	dials     map[string]int
	dialling  int
	streams   map[string][]*stream // from each address to the client, of all connections there were
	port      int
	most      int // the most connections there were at one time
}

func newMemnet() *memnet {
	return &memnet{listeners: map[string]*memListener{}, blackhole: map[string]bool{},
		delay: map[string]time.Duration{}, conns: map[*memConn]bool{}, dials: map[string]int{},
		streams: map[string][]*stream{}}
}

// Listen takes connections to host:port.
func (n *memnet) Listen(addr string) net.Listener {
	l := &memListener{net: n, addr: memAddr(addr), accept: make(chan net.Conn, 1024), closed: make(chan struct{})}
	n.mu.Lock()
	n.listeners[addr] = l
	n.mu.Unlock()
	return l
}

// DialContext connects to a listener. Without one it is refused, as by a host that is up.
func (n *memnet) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials[addr]++
	n.dialling++
	n.port++
	here := memAddr("client:" + strconv.Itoa(n.port))
	l, hole, delay := n.listeners[addr], n.blackhole[addr], n.delay[addr]
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.dialling--
		n.mu.Unlock()
	}()
	if hole {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: memAddr(addr), Err: ctx.Err()}
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: memAddr(addr), Err: ctx.Err()}
		}
	}
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: memAddr(addr), Err: syscall.ECONNREFUSED}
	}
	up, down := newStream(), newStream()
	client := &memConn{net: n, in: down, out: up, local: here, remote: memAddr(addr), host: addr}
	server := &memConn{in: up, out: down, local: memAddr(addr), remote: here}
	select {
	case l.accept <- server:
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: memAddr(addr), Err: syscall.ECONNREFUSED}
	}
	n.mu.Lock()
	n.conns[client] = true
	n.streams[addr] = append(n.streams[addr], down)
	n.most = max(n.most, len(n.conns))
	n.mu.Unlock()
	return client, nil
}

// BlackHole makes dials to an address hang until they are given up.
func (n *memnet) BlackHole(addr string, on bool) {
	n.mu.Lock()
	n.blackhole[addr] = on
	n.mu.Unlock()
}

// Close makes an address refuse new connections. Those that it has go on.
func (n *memnet) Close(addr string) {
	n.mu.Lock()
	delete(n.listeners, addr)
	n.mu.Unlock()
}

// Delay makes each dial to an address take a time.
func (n *memnet) Delay(addr string, d time.Duration) {
	n.mu.Lock()
	n.delay[addr] = d
	n.mu.Unlock()
}

// Open counts the connections that the client has not closed.
func (n *memnet) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// Taken counts the bytes that the client has read from an address.
func (n *memnet) Taken(addr string) (taken int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.streams[addr] {
		s.set(func(s *stream) { taken += s.taken })
	}
	return taken
}

// Most is the most connections there were at one time.
func (n *memnet) Most() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most
}

// Dials counts the dials to an address.
func (n *memnet) Dials(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[addr]
}

// Dialling counts the dials that have not ended.
func (n *memnet) Dialling() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dialling
}

// each does something to every open connection to an address.
func (n *memnet) each(addr string, f func(*memConn)) {
	n.mu.Lock()
	var conns []*memConn
	for c := range n.conns {
		if c.host == addr {
			conns = append(conns, c)
		}
	}
	n.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}

// Freeze stops the bytes on the connections that an address has now, both ways and without a word, like a relay that lost
// its state. New connections are fine.
func (n *memnet) Freeze(addr string) {
	n.each(addr, func(c *memConn) {
		c.in.set(func(s *stream) { s.frozen = true })
		c.out.set(func(s *stream) { s.frozen = true })
	})
}

// Break resets the connections that an address has now.
func (n *memnet) Break(addr string) {
	n.each(addr, func(c *memConn) { c.in.fail(syscall.ECONNRESET); c.out.fail(syscall.ECONNRESET) })
}

// Unwritable makes every write on the connections that an address has now fail, before a byte is taken, while reads say
// nothing yet: what a client sees when the news of a dead peer comes with its next write.
func (n *memnet) Unwritable(addr string) {
	n.each(addr, func(c *memConn) { c.out.set(func(s *stream) { s.shut = true }) })
}

type memAddr string

func (memAddr) Network() string  { return "tcp" }
func (a memAddr) String() string { return string(a) }

type memListener struct {
	net    *memnet
	addr   memAddr
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *memListener) Addr() net.Addr { return l.addr }

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		if l.net.listeners[string(l.addr)] == l {
			delete(l.net.listeners, string(l.addr))
		}
		l.net.mu.Unlock()
		close(l.closed)
	})
	return nil
}

// streamLimit is how much a stream holds before its writer waits.
const streamLimit = 1 << 20

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	cond     sync.Cond
	buf      []byte
	taken    int   // bytes read so far
	ended    bool  // the writer has closed
	err      error // of every read and write from now on
	shut     bool  // writes fail; reads do not know
	frozen   bool  // what is written is lost, and nothing can be read
	deadline time.Time
	timer    *time.Timer
}

func newStream() *stream {
	s := &stream{}
	s.cond.L = &s.mu
	return s
}

func (s *stream) set(f func(*stream)) {
	s.mu.Lock()
	f(s)
	s.cond.Broadcast()
	s.mu.Unlock()
}

func (s *stream) fail(err error) {
	s.set(func(s *stream) {
		if s.err == nil {
			s.err = err
		}
	})
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.err != nil:
			return 0, s.err
		case !s.deadline.IsZero() && !time.Now().Before(s.deadline):
			return 0, os.ErrDeadlineExceeded
		case s.frozen:
		case len(s.buf) > 0:
			n := copy(p, s.buf)
			s.buf = s.buf[n:]
			s.taken += n
			s.cond.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		s.cond.Wait()
	}
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.err != nil:
			return 0, s.err
		case s.ended:
			return 0, net.ErrClosed
		case s.shut:
			return 0, syscall.EPIPE
		case s.frozen:
			return len(p), nil
		case len(s.buf) < streamLimit:
			s.buf = append(s.buf, p...)
			s.cond.Broadcast()
			return len(p), nil
		}
		s.cond.Wait()
	}
}

func (s *stream) setDeadline(t time.Time) {
	s.set(func(s *stream) {
		if s.timer != nil {
			s.timer.Stop()
			s.timer = nil
		}
		s.deadline = t
		if wait := time.Until(t); !t.IsZero() && wait > 0 {
			s.timer = time.AfterFunc(wait, func() { s.set(func(*stream) {}) })
		}
	})
}

// memConn is one end of a connection. Its writes heed no deadline: what a test writes fits, or is meant to wait.
type memConn struct {
	net           *memnet // of a client end
	in, out       *stream
	local, remote memAddr
	host          string
}

func (c *memConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *memConn) Write(p []byte) (int, error) { return c.out.write(p) }

func (c *memConn) Close() error {
	c.out.set(func(s *stream) { s.ended = true })
	c.in.fail(net.ErrClosed)
	c.in.setDeadline(time.Time{})
	if c.net != nil {
		c.net.mu.Lock()
		delete(c.net.conns, c)
		c.net.mu.Unlock()
	}
	return nil
}

func (c *memConn) LocalAddr() net.Addr               { return c.local }
func (c *memConn) RemoteAddr() net.Addr              { return c.remote }
func (c *memConn) SetReadDeadline(t time.Time) error { c.in.setDeadline(t); return nil }
func (c *memConn) SetWriteDeadline(time.Time) error  { return nil }
func (c *memConn) SetDeadline(t time.Time) error     { return c.SetReadDeadline(t) }
