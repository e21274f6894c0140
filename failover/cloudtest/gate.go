package cloudtest

import (
	"net"
	"os"
	"sync"
	"time"
)

// gateLimit is how much a frozen connection takes from its writer, as the send buffer of a real one would.
const gateLimit = 64 << 10

// gate is the client's end of a connection, in memory or not. While it is frozen, nothing passes it in either direction, the
// peer's close and reset included, and nothing tells: that is what a connection is like whose path has died.
type gate struct {
	net.Conn
	host *Host
	once sync.Once

	mu      sync.Mutex
	changed sync.Cond
	frozen  int // by so many faults
	closed  bool
	held    []byte // written while frozen
	came    []byte // read from the peer while frozen
	cameErr error
	reader  deadline
	writer  deadline

	reading, writing sync.Mutex // one each at a time, in order
}

func newGate(conn net.Conn, host *Host) *gate {
	g := &gate{Conn: conn, host: host}
	g.changed.L = &g.mu
	return g
}

// Read reads from the peer, but holds back what arrives during a freeze until it ends.
func (g *gate) Read(p []byte) (int, error) {
	g.reading.Lock()
	defer g.reading.Unlock()
	for {
		if n, err, ok := g.stored(p); ok {
			return n, err
		}
		n, err := g.Conn.Read(p)
		if !g.keep(p[:n], err) {
			return n, err
		}
	}
}

// keep stores what was read, if it must not pass. A deadline of our own is no byte of the peer's: it passes.
func (g *gate) keep(p []byte, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen == 0 || g.closed || len(p) == 0 && os.IsTimeout(err) {
		return false
	}
	g.came, g.cameErr = append(g.came, p...), err
	return true
}

// stored gives out what was held back, waiting until it may. ok is false if there is nothing.
func (g *gate) stored(p []byte) (n int, err error, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		switch {
		case g.closed:
			return 0, g.opError("read", net.ErrClosed), true
		case len(g.came) == 0 && g.cameErr == nil:
			return 0, nil, false
		case g.reader.passed():
			return 0, g.opError("read", os.ErrDeadlineExceeded), true
		case g.frozen == 0 && len(g.came) > 0:
			n = copy(p, g.came)
			g.came = g.came[n:]
			return n, nil, true
		case g.frozen == 0:
			return 0, g.cameErr, true
		}
		g.changed.Wait()
	}
}

// Write writes to the peer. During a freeze it takes as much as a send buffer does, then waits.
func (g *gate) Write(p []byte) (n int, err error) {
	g.writing.Lock()
	defer g.writing.Unlock()
	g.mu.Lock()
	for {
		switch {
		case g.closed:
			g.mu.Unlock()
			return n, g.opError("write", net.ErrClosed)
		case g.frozen == 0 && len(g.held) == 0:
			g.mu.Unlock()
			m, err := g.Conn.Write(p)
			return n + m, err
		case g.writer.passed():
			g.mu.Unlock()
			return n, g.opError("write", os.ErrDeadlineExceeded)
		}
		room := min(gateLimit-len(g.held), len(p))
		g.held = append(g.held, p[:room]...)
		if p, n = p[room:], n+room; len(p) == 0 {
			g.mu.Unlock()
			return n, nil
		}
		g.changed.Wait()
	}
}

func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.frozen++
}

// thaw lets everything pass that was held back.
func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen--; g.frozen > 0 {
		return
	}
	for len(g.held) > 0 && !g.closed {
		held := g.held
		g.mu.Unlock()
		_, err := g.Conn.Write(held)
		g.mu.Lock()
		if g.held = g.held[len(held):]; err != nil {
			g.held = nil
		}
	}
	g.changed.Broadcast()
}

// Close closes the connection, whether frozen or not.
func (g *gate) Close() error {
	g.mu.Lock()
	g.closed = true
	g.reader.stop()
	g.writer.stop()
	g.changed.Broadcast()
	g.mu.Unlock()
	g.once.Do(func() { g.host.gates.remove(g) })
	return g.Conn.Close()
}

// SetDeadline sets both deadlines, here and below: a call may wait in either place.
func (g *gate) SetDeadline(t time.Time) error {
	g.arm(&g.reader, t)
	g.arm(&g.writer, t)
	return g.Conn.SetDeadline(t)
}

func (g *gate) SetReadDeadline(t time.Time) error {
	g.arm(&g.reader, t)
	return g.Conn.SetReadDeadline(t)
}

func (g *gate) SetWriteDeadline(t time.Time) error {
	g.arm(&g.writer, t)
	return g.Conn.SetWriteDeadline(t)
}

func (g *gate) arm(d *deadline, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d.set(at, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})
	g.changed.Broadcast()
}

func (g *gate) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: g.LocalAddr().Network(), Source: g.LocalAddr(), Addr: g.RemoteAddr(), Err: err}
}
