package failover_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// net/http may hold the goroutine that sends or reads a request beyond the end of its context. The caller's is another one.

// slowClose is a connection whose end takes its time, such as a tunnel's.
type slowClose struct{ net.Conn }

func (c slowClose) Close() error {
	pass(20 * time.Second)
	return c.Conn.Close()
}

func TestWallHoldsWhileAConnectionCloses(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, 6 * time.Second} {
		inWorld(t, func(w *world) {
			w.serve(own, hang)
			dial := w.client.DialContext
			w.client.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return slowClose{conn}, nil
			}
			r := w.post(within(w, limit), w.transport(), own, failover.Call{})
			if !errors.Is(r.err, context.DeadlineExceeded) || r.took != limit {
				t.Errorf("a call with %v: %v after %v", limit, r.err, r.took)
			}
			pass(time.Minute)
		})
	}
}

// A peer that stops reading a request and goes on answering leaves net/http waiting to write a window update. The time is real,
// since net/http waits for a mutex, at which a bubble's clock stands still.
func TestWallHoldsOverAnHTTP2PeerThatDoesNotRead(t *testing.T) {
	const settings = "\x00\x04\x7f\xff\xff\xff" // windows as large as they can be: all of the request may be sent
	for name, ended := range map[string]error{"deadline": context.DeadlineExceeded, "cancel": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			answering := make(chan struct{})
			served := make(chan struct{})
			go func() {
				defer close(served)
				conn, err := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate(own)}, NextProtos: []string{"h2"}}).Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				c := &h2conn{Conn: conn}
				io.ReadFull(c, make([]byte, len(http2Preface)))
				c.frame(frameSettings, 0, 0, []byte(settings))
				c.frame(frameWindowUpdate, 0, 0, []byte{0x7f, 0xfe, 0, 0})
				for {
					kind, flags, stream, _, err := c.read()
					if err != nil {
						return
					}
					switch {
					case kind == frameSettings && flags&flagAck == 0:
						c.frame(frameSettings, flagAck, 0, nil)
					case kind == frameHeaders:
						c.frame(frameHeaders, flagEndHeaders, stream, []byte{0x88}) // status 200
						close(answering)
						for { // and nothing is read any more
							select {
							case <-stop:
								return
							case <-time.After(50 * time.Millisecond):
								c.frame(frameData, 0, stream, make([]byte, 2000)) // within its windows for longer than the test takes
							}
						}
					}
				}
			}()
			defer func() { close(stop); l.Close(); <-served }()
			tr := http2To(l)
			tr.HTTP2 = &http.HTTP2Config{WriteByteTimeout: time.Hour} // what is tested is the wait
			rt, err := failover.New(tr)
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if ended == context.DeadlineExceeded {
				ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
			}
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+own+method, bytes.NewReader(make([]byte, 40<<20)))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := rt.RoundTrip(req)
				done <- err
			}()
			<-answering
			if ended == context.Canceled {
				<-time.After(time.Second) // until the answer is being read and the request is stuck
				cancel()
			}
			select {
			case err := <-done:
				if !errors.Is(err, ended) {
					t.Errorf("got %v, want %v", err, ended)
				}
			case <-time.After(20 * time.Second): // far more than a busy machine needs
				t.Error("the call goes on after its end")
			}
		})
	}
}

// Such a peer answers no ping and is never silent, so that only the write that stands still tells. Without it what a call left
// behind, and each later call on the connection, would stay for as long as the peer sends.
func TestPeerThatDoesNotReadIsLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop, left := make(chan struct{}), make(chan bool, 1)
	go func() {
		conn, err := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate(own)}, NextProtos: []string{"h2"}}).Accept()
		if err != nil {
			left <- false
			return
		}
		defer conn.Close()
		c := &h2conn{Conn: conn}
		io.ReadFull(c, make([]byte, len(http2Preface)))
		c.frame(frameSettings, 0, 0, []byte("\x00\x04\x7f\xff\xff\xff"))
		c.frame(frameWindowUpdate, 0, 0, []byte{0x7f, 0xfe, 0, 0})
		for kind := byte(0xff); kind != frameHeaders; {
			if kind, _, _, _, err = c.read(); err != nil {
				left <- false
				return
			}
		}
		for gone := error(nil); gone == nil; { // and nothing is read any more
			select {
			case <-stop:
				left <- false
				return
			case <-time.After(50 * time.Millisecond):
				_, gone = c.Write([]byte{0, 0, 8, framePing, flagAck, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
			}
		}
		left <- true
	}()
	rt, err := failover.New(http2To(l))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+own+method, bytes.NewReader(make([]byte, 40<<20)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	end := time.AfterFunc(30*time.Second, func() { close(stop) }) // far more than a busy machine needs
	defer end.Stop()
	if !<-left {
		t.Error("the connection is kept")
	}
	l.Close()
}

// http2To is a transport whose connections lead to a listener, whatever their host.
func http2To(l net.Listener) *http.Transport {
	return &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: authority().pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
		}}
}
