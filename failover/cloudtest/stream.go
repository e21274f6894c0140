package cloudtest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// streamLimit is how much a stream holds before a writer waits, about what a socket's buffers hold.
const streamLimit = 256 << 10

// stream is one direction of an in-memory connection. It is buffered: with net.Pipe, a peer that stops reading would stop the
// writer at once, which no socket does, and in a synctest bubble the clock with it.
type stream struct {
	mu      sync.Mutex
	changed sync.Cond
	buf     []byte
	ended   bool // the writer closed; what is buffered can still be read
	left    bool // the reader closed
	reset   bool // the connection was cut; what is buffered can still be read
	reader  deadline
	writer  deadline
}

// deadline is one of a connection's two. Its owner's lock guards it.
type deadline struct {
	at    time.Time // zero: none
	timer *time.Timer
}

// set moves the deadline. wake is called, on another goroutine, when it passes.
func (d *deadline) set(at time.Time, wake func()) {
	d.stop()
	d.at = at
	if wait := time.Until(at); !at.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, wake)
	}
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newStream() *stream {
	s := &stream{}
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.left:
			return 0, net.ErrClosed
		case s.reader.passed():
			return 0, os.ErrDeadlineExceeded
		case len(s.buf) > 0:
			n := copy(p, s.buf)
			s.buf = s.buf[n:]
			s.changed.Broadcast()
			return n, nil
		case s.reset:
			return 0, syscall.ECONNRESET
		case len(p) == 0:
			return 0, nil
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended:
			return n, net.ErrClosed
		case s.writer.passed():
			return n, os.ErrDeadlineExceeded
		case s.reset:
			return n, syscall.ECONNRESET
		case s.left:
			return n, syscall.EPIPE
		}
		if room := min(streamLimit-len(s.buf), len(p)); room > 0 {
			s.buf = append(s.buf, p[:room]...)
			p, n = p[room:], n+room
			s.changed.Broadcast()
		}
		if len(p) == 0 {
			return n, nil
		}
		s.changed.Wait()
	}
}

// set changes a flag or a buffer, and wakes whoever waits.
func (s *stream) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.changed.Broadcast()
}

func (s *stream) setDeadline(d *deadline, at time.Time) {
	s.set(func() { d.set(at, func() { s.set(func() {}) }) })
}

// memConn is one end of an in-memory connection.
type memConn struct {
	in, out       *stream
	local, remote net.Addr
}

// memPipe returns the two ends of a connection.
func memPipe(client, server net.Addr) (*memConn, *memConn) {
	up, down := newStream(), newStream()
	return &memConn{down, up, client, server}, &memConn{up, down, server, client}
}

func (c *memConn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.opError("read", err)
}

func (c *memConn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.opError("write", err)
}

// Close ends both directions. The peer can read what was written before.
func (c *memConn) Close() error {
	c.in.set(func() { c.in.left, c.in.buf = true, nil; c.in.reader.stop() })
	c.out.set(func() { c.out.ended = true; c.out.writer.stop() })
	return nil
}

// cut breaks the connection as a reset does. What has arrived at the peer can be read there all the same, as with Linux.
func (c *memConn) cut() {
	for _, s := range [...]*stream{c.in, c.out} {
		s.set(func() { s.reset = true })
	}
	c.Close()
}

func (c *memConn) LocalAddr() net.Addr  { return c.local }
func (c *memConn) RemoteAddr() net.Addr { return c.remote }

func (c *memConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.reader, t)
	return nil
}

func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writer, t)
	return nil
}

func (c *memConn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}

// memAddr is the address of an end of an in-memory connection.
type memAddr string

func (memAddr) Network() string  { return "mem" }
func (a memAddr) String() string { return string(a) }
