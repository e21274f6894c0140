package failover_test

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// The few HTTP/2 frames (RFC 9113) that a server needs to refuse, reset and go away, which net/http's own does not on request.

const (
	frameData, frameHeaders, frameReset, frameSettings = 0x0, 0x1, 0x3, 0x4
	framePing, frameGoAway, frameWindowUpdate          = 0x6, 0x7, 0x8

	flagEndStream, flagAck, flagEndHeaders = 0x1, 0x1, 0x4

	http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	codeNone, codeProtocol, codeInternal, codeRefused, codeCancel = 0x0, 0x1, 0x2, 0x7, 0x8
)

// h2server answers each request, once it is there whole, by calling script with its number, from 1.
type h2server struct {
	script func(c *h2conn, stream uint32, n int)

	mu     sync.Mutex
	bodies []string
	conns  []*h2conn
}

// h2conn is one of its connections.
type h2conn struct {
	net.Conn
	number int // from 1
}

// serveH2 starts a server for a host name, over TLS.
func (w *world) serveH2(host string, script func(c *h2conn, stream uint32, n int)) *h2server {
	config := &tls.Config{Certificates: []tls.Certificate{certificate(host)}, NextProtos: []string{"h2"}}
	return w.serveFrames(tls.NewListener(w.net.Listen(host+":443"), config), script)
}

// serveFrames starts a server on a listener.
func (w *world) serveFrames(l net.Listener, script func(c *h2conn, stream uint32, n int)) *h2server {
	s := &h2server{script: script}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			c := &h2conn{conn, len(s.conns) + 1}
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			go s.serve(c)
		}
	}()
	w.t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.conns {
			c.Close()
		}
	})
	return s
}

// requests returns the bodies of the requests that came, in order.
func (s *h2server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

func (s *h2server) serve(c *h2conn) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2Preface))); err != nil {
		return
	}
	c.frame(frameSettings, 0, 0, nil)
	bodies := map[uint32][]byte{}
	for {
		kind, flags, stream, payload, err := c.read()
		if err != nil {
			return
		}
		switch kind {
		case frameSettings:
			if flags&flagAck == 0 {
				c.frame(frameSettings, flagAck, 0, nil)
			}
		case framePing:
			if flags&flagAck == 0 {
				c.frame(framePing, flagAck, 0, payload)
			}
		case frameData:
			bodies[stream] = append(bodies[stream], payload...)
		}
		if (kind == frameData || kind == frameHeaders) && flags&flagEndStream != 0 {
			s.mu.Lock()
			s.bodies = append(s.bodies, string(bodies[stream]))
			n := len(s.bodies)
			s.mu.Unlock()
			s.script(c, stream, n)
		}
	}
}

// read returns the next frame.
func (c *h2conn) read() (kind, flags byte, stream uint32, payload []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(c, payload)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload, err
}

func (c *h2conn) frame(kind, flags byte, stream uint32, payload []byte) error {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	_, err := c.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
	return err
}

// answer sends a 200 of the type that Twirp clients ask for.
func (c *h2conn) answer(stream uint32, body string) {
	headers := []byte{0x88, 0x0f, 31 - 15, byte(len(protobuf))} // HPACK: ":status 200", and "content-type" as a literal
	c.frame(frameHeaders, flagEndHeaders, stream, append(headers, protobuf...))
	c.frame(frameData, flagEndStream, stream, []byte(body))
}

// reset ends a stream with an error code.
func (c *h2conn) reset(stream, code uint32) {
	c.frame(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

// goAway says that streams up to last were or may be processed, and no later one.
func (c *h2conn) goAway(last, code uint32) {
	c.frame(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}
