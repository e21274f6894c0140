package cloudtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// door is where connections to one port of a host come in: a socket on the loopback interface, or memory.
type door struct {
	net.Listener
	host    *Host
	connect func(context.Context) (net.Conn, error)
}

// newDoor opens the door of a port of a host.
func newDoor(h *Host, port string, inMemory bool) (*door, error) {
	if inMemory {
		l := &memListener{addr: memAddr(h.name + ":" + port), conns: make(chan net.Conn), closed: make(chan struct{})}
		return &door{l, h, l.connect}, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cloudtest: %s: %w", h.name, err)
	}
	dialer, addr := &net.Dialer{}, l.Addr().String()
	return &door{l, h, func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }}, nil
}

// Accept returns the next connection, known to its host from now on.
func (d *door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s := &served{Conn: conn, host: d.host}
	d.host.conns.add(s)
	if d.host.cutOff() {
		s.cut()
	}
	return s, nil
}

// memListener is a listener in memory.
type memListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memListener) Addr() net.Addr { return l.addr }

func (l *memListener) connect(ctx context.Context) (net.Conn, error) {
	client, server := memPipe(memAddr("client"), l.addr)
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// served is the server's end of a connection.
type served struct {
	net.Conn
	host *Host
	once sync.Once
}

func (s *served) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.host.cloud.record.wrote(s)
	return n, err
}

func (s *served) Close() error {
	s.once.Do(func() {
		s.host.conns.remove(s)
		s.host.cloud.record.gone(s)
	})
	return s.Conn.Close()
}

// cut breaks the connection as a network or a crash does: the client sees a reset, without a goodbye of TLS or HTTP/2.
func (s *served) cut() {
	switch conn := s.Conn.(type) {
	case *net.TCPConn:
		conn.SetLinger(0)
	case *memConn:
		conn.cut()
	}
	s.Close()
}

// servedBy finds the server's end under TLS.
func servedBy(conn net.Conn) *served {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	s, _ := conn.(*served)
	return s
}

func isHTTP2(conn net.Conn) bool {
	t, ok := conn.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
