package sockets

import (
	"context"
	"net/http"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
	"github.com/livekit/protocol/livekit" // signal messages are no part of a server SDK
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"google.golang.org/protobuf/proto"
)

// network is how a library that brings its own connections reaches the servers. The zero value is the real one.
type network struct {
	client *http.Client
	dialer gorilla.Dialer
}

// way joins a room, one of the ways that the package documentation shows.
type way struct {
	name string
	join func(ctx context.Context, t *failover.Transport, n network, serverURL, token string) (*signal, error)
	// reads tells that the first message is read within the attempt, so that the next region is tried if there is none.
	reads bool
}

var ways = []way{
	{"coder by path", func(ctx context.Context, t *failover.Transport, _ network, serverURL, token string) (*signal, error) {
		conn, err := joinByPath(ctx, t, serverURL, token)
		if err != nil {
			return nil, err
		}
		_, first, err := conn.Read(ctx)
		if err != nil {
			conn.CloseNow()
			return nil, err
		}
		return coderSignal(conn, first), nil
	}, false},
	{"coder through Connect", func(ctx context.Context, t *failover.Transport, n network, serverURL, token string) (*signal, error) {
		conn, first, err := joinWithCoder(ctx, t, n.client, serverURL, token)
		if err != nil {
			return nil, err
		}
		return coderSignal(conn, first), nil
	}, true},
	{"gorilla through Connect", func(ctx context.Context, t *failover.Transport, n network, serverURL, token string) (*signal, error) {
		conn, first, err := joinWithGorilla(ctx, t, n.dialer, serverURL, token)
		if err != nil {
			return nil, err
		}
		return gorillaSignal(conn, first), nil
	}, true},
}

// signal is a signal connection. What comes over it after the first message is read and thrown away.
type signal struct {
	first []byte
	ping  func(context.Context) error // a WebSocket ping and its pong
	close func()                      // returns when nothing of the connection is left here
}

func coderSignal(conn *coder.Conn, first []byte) *signal {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, _, err := conn.Read(context.Background()); err != nil {
				return
			}
		}
	}()
	return &signal{first, conn.Ping, func() { conn.CloseNow(); <-ended }}
}

func gorillaSignal(conn *gorilla.Conn, first []byte) *signal {
	ended, pongs := make(chan struct{}), make(chan string, 1)
	conn.SetPongHandler(func(text string) error { pongs <- text; return nil })
	go func() {
		defer close(ended)
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
	ping := func(ctx context.Context) error {
		if err := conn.WriteControl(gorilla.PingMessage, []byte("?"), time.Now().Add(time.Minute)); err != nil {
			return err
		}
		select {
		case <-pongs:
			return nil
		case <-ended:
			return gorilla.ErrCloseSent
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return &signal{first, ping, func() { conn.Close(); <-ended }}
}

// joined reads the first message, which is to be a join.
func (s *signal) joined(t *testing.T) *livekit.JoinResponse {
	t.Helper()
	var first livekit.SignalResponse
	if err := proto.Unmarshal(s.first, &first); err != nil {
		t.Fatal(err)
	}
	if first.GetJoin() == nil {
		t.Fatalf("the first message is %v, want a join", &first)
	}
	return first.GetJoin()
}

// lives fails the test unless the connection is alive.
func (s *signal) lives(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.ping(ctx); err != nil {
		t.Errorf("the connection is dead: %v", err)
	}
}

const (
	roomName = "lobby"
	identity = "probe"
)

// mint makes a token for joining. mode is what the test-server is to do with it.
func mint(t testing.TB, key, secret, mode string) string {
	t.Helper()
	at := auth.NewAccessToken(key, secret).SetIdentity(identity).SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: roomName})
	if mode != "" {
		at.SetAttributes(map[string]string{"lk.mock": `{"signal":"` + mode + `"}`})
	}
	token, err := at.ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func newTransport(t testing.TB, next http.RoundTripper, opts ...failover.Option) *failover.Transport {
	t.Helper()
	rt, err := failover.New(next, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}
