package failover_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
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

// stuckClose is a connection whose Close waits for as long as stuck is open, unless the peer is gone.
type stuckClose struct {
	net.Conn
	gone  atomic.Bool
	stuck <-chan struct{}
}

func (c *stuckClose) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.gone.Store(true)
	}
	return n, err
}

func (c *stuckClose) Close() error {
	if !c.gone.Load() {
		<-c.stuck
	}
	return c.Conn.Close()
}

// An origin whose connection broke gets new ones, and those that it had are closed: on nobody's time. The time is real, since net/http
// holds a mutex while it closes a connection.
func TestWallHoldsWhileIdleConnectionsClose(t *testing.T) {
	var breaks atomic.Int32
	var together sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if breaks.Add(-1) >= 0 {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Query().Has("together") {
			together.Done()
			together.Wait()
		}
		ok(rw, r)
	}))
	server.Config.ErrorLog = quiet
	stuck := make(chan struct{})
	rt, err := failover.New(&http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		if err != nil {
			return nil, err
		}
		return &stuckClose{Conn: conn, stuck: stuck}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer rt.Close()
	defer close(stuck)
	call := func(query string) error {
		req := request(cloud, strings.NewReader("x"), 1)
		req.URL.RawQuery = query
		resp, err := rt.RoundTrip(req)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		return err
	}

	breaks.Store(1)
	if err := call(""); err != nil { // its second attempt goes over new connections
		t.Fatal(err)
	}
	together.Add(2)
	var calls sync.WaitGroup
	for range 2 { // which are two now, and idle
		calls.Go(func() {
			if err := call("together"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	breaks.Store(1)
	done := make(chan error, 1)
	go func() { done <- call("") }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second): // far more than a busy machine needs
		t.Error("the call waits for the end of a connection")
	}
}

// A peer that stops reading a request and goes on answering leaves net/http waiting to write a window update. The time is real,
// since net/http waits for a mutex, at which a bubble's clock stands still.
func TestWallHoldsOverAnHTTP2PeerThatDoesNotRead(t *testing.T) {
	t.Run("deadline", func(t *testing.T) {
		limit := 2 * time.Second
		for !callOfDeafPeer(t, limit, context.DeadlineExceeded) { // a busy machine did not get so far in that time
			limit *= 2
		}
	})
	t.Run("cancel", func(t *testing.T) {
		if !callOfDeafPeer(t, time.Hour, context.Canceled) {
			t.Error("the call ended before the peer answered")
		}
	})
}

// callOfDeafPeer makes a call that is to end with `ended`. It returns false if its time was over before the peer answered.
func callOfDeafPeer(t *testing.T, limit time.Duration, ended error) bool {
	p := newDeafPeer(t, func(c *h2conn, stream uint32) error {
		return c.frame(frameData, 0, stream, make([]byte, 2000)) // within its windows for longer than the test takes
	})
	tr := http2To(p.Listener)
	tr.HTTP2 = &http.HTTP2Config{WriteByteTimeout: time.Hour} // what is tested is the wait
	cancel, done := p.call(t, tr, limit)
	defer cancel()
	select {
	case <-p.answering:
	case err := <-done:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		return false
	}
	if ended == context.Canceled {
		<-time.After(time.Second) // until the answer is being read and the request is stuck
		cancel()
	}
	select {
	case err := <-done:
		if !errors.Is(err, ended) {
			t.Errorf("got %v, want %v", err, ended)
		}
	case <-time.After(limit%time.Hour + 20*time.Second): // far more than a busy machine needs
		t.Error("the call goes on after its end")
	}
	return true
}

// Such a peer answers no ping and is never silent, so that only the write that stands still tells. Without it what a call left
// behind, and each later call on the connection, would stay for as long as the peer sends.
func TestPeerThatDoesNotReadIsLeft(t *testing.T) {
	p := newDeafPeer(t, func(c *h2conn, _ uint32) error { return c.frame(framePing, flagAck, 0, make([]byte, 8)) })
	cancel, done := p.call(t, http2To(p.Listener), time.Hour)
	defer cancel()
	select {
	case <-p.answering:
	case err := <-done:
		t.Fatalf("the call ended before the peer answered: %v", err)
	}
	<-time.After(time.Second) // until the request is stuck
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-p.left:
	case <-time.After(30 * time.Second): // far more than a busy machine needs
		t.Error("the connection is kept")
	}
}

// deafPeer is an HTTP/2 server that takes one request, reads nothing after its headers, and goes on sending.
type deafPeer struct {
	net.Listener
	answering chan struct{} // the headers have come
	left      chan struct{} // the connection is gone
}

// newDeafPeer starts a peer that calls send again and again. It is gone when the test is over.
func newDeafPeer(t *testing.T, send func(c *h2conn, stream uint32) error) *deafPeer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &deafPeer{l, make(chan struct{}), make(chan struct{})}
	stop, served := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		conn, err := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate(own)}, NextProtos: []string{"h2"}}).Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		c := &h2conn{Conn: conn}
		io.ReadFull(c, make([]byte, len(http2Preface)))
		c.frame(frameSettings, 0, 0, []byte("\x00\x04\x7f\xff\xff\xff")) // windows as large as they can be: all may be sent
		c.frame(frameWindowUpdate, 0, 0, []byte{0x7f, 0xfe, 0, 0})
		for {
			kind, flags, stream, _, err := c.read()
			if err != nil {
				return
			}
			if kind == frameSettings && flags&flagAck == 0 {
				c.frame(frameSettings, flagAck, 0, nil)
			}
			if kind != frameHeaders {
				continue
			}
			c.frame(frameHeaders, flagEndHeaders, stream, []byte{0x88}) // status 200
			close(p.answering)
			for { // and nothing is read any more
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
					if send(c, stream) != nil {
						close(p.left)
						return
					}
				}
			}
		}
	}()
	t.Cleanup(func() { close(stop); l.Close(); <-served })
	return p
}

// call makes a call with a request that does not fit into what the network takes on its own.
func (p *deafPeer) call(t *testing.T, tr *http.Transport, limit time.Duration) (cancel context.CancelFunc, done <-chan error) {
	rt, err := failover.New(tr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	body := bytes.NewReader(make([]byte, 40<<20))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+own+method, body)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := rt.RoundTrip(req)
		ended <- err
	}()
	return cancel, ended
}

// http2To is a transport whose connections lead to a listener, whatever their host.
func http2To(l net.Listener) *http.Transport {
	return &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: authority().pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
		}}
}
