package cloudtest_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

func TestRefuse(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		u.works(h)
		hung := make(chan answer, 1)
		hang := h.Break(cloudtest.Hang(), cloudtest.Times(1))
		go func() { hung <- u.another().create(background, h) }()
		eventually(t, "a request is in flight", func() bool { return hang.Hits() == 1 })

		b := h.Refuse()
		if a := <-hung; !isReset(a.err) {
			t.Errorf("the request in flight: %+v", a)
		}
		if err := h.AwaitDisconnect(background); err != nil || h.Connections() != 0 {
			t.Errorf("%d connections are left: %v", h.Connections(), err)
		}
		if b.Hits() != 2 {
			t.Errorf("%d hits for 2 connections", b.Hits())
		}
		if a := u.create(background, h); !errors.Is(a.err, syscall.ECONNREFUSED) {
			t.Errorf("got %+v", a)
		}
		dials := h.Dials() // net/http may dial twice where one connection has just broken
		if last := dials[len(dials)-1]; len(dials) < 3 || !errors.Is(last.Err, syscall.ECONNREFUSED) || !strings.HasPrefix(last.Address, h.Name()+":") {
			t.Errorf("dials: %v", dials)
		}
		u.works(u.Region(1))
		b.Clear()
		u.works(h)
	})
}

// Refuse and BlackHole hold for as many dials as they are told.
func TestNetworkFaultsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		dial := func(h *cloudtest.Host) error {
			ctx, cancel := context.WithTimeout(background, time.Second)
			defer cancel()
			conn, err := u.DialContext(ctx, "tcp", h.Name()+":443")
			if err == nil {
				conn.Close()
			}
			return err
		}
		second := []cloudtest.When{cloudtest.Skip(1), cloudtest.Times(2)}
		for _, test := range []struct {
			name string
			set  func(h *cloudtest.Host) *cloudtest.Break
			want string // a letter for each dial: x failed, . went through
		}{
			{"refuse", func(h *cloudtest.Host) *cloudtest.Break { return h.Refuse(second...) }, ".xx.."},
			{"black hole", func(h *cloudtest.Host) *cloudtest.Break { return h.BlackHole(second...) }, ".xx.."},
			{"unresolve", func(h *cloudtest.Host) *cloudtest.Break { return h.Unresolve(second...) }, ".xx.."},
			{"for a time", func(h *cloudtest.Host) *cloudtest.Break { // the third dial waits and gets through
				return h.BlackHole(cloudtest.Later(500*time.Millisecond), cloudtest.For(2*time.Second))
			}, ".x..."},
		} {
			h := u.Region(1)
			b := test.set(h)
			got := ""
			for range test.want {
				if err := dial(h); err == nil {
					got += "."
				} else {
					got += "x"
				}
				if got == "." {
					<-time.After(time.Second)
				}
			}
			if got != test.want || b.Hits() != 2 {
				t.Errorf("%s: %s with %d hits, want %s", test.name, got, b.Hits(), test.want)
			}
			b.Clear()
			<-time.After(time.Second)
		}
	})
}

// A connection that is cut ends with a reset, not with a goodbye.
func TestRefuseResets(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		scheme, port := "https", ":443"
		if strings.HasPrefix(h.URL(), "http:") {
			scheme, port = "http", ":80"
		}
		conn, err := u.DialContext(background, "tcp", h.Name()+port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if scheme == "https" {
			cfg := u.TLSConfig()
			cfg.ServerName = h.Name()
			conn = tls.Client(conn, cfg)
		}
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+h.Name()+"\r\n\r\n")
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		h.Refuse()
		if _, err := r.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// isReset: what a client sees of a reset depends on where it is at that moment.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || err != nil && strings.Contains(err.Error(), "EOF") ||
		err != nil && strings.Contains(err.Error(), "connection lost")
}

func TestBlackHole(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		u.works(h)
		b := h.BlackHole()
		if err := h.AwaitDisconnect(background); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(background)
		done := make(chan answer)
		go func() { done <- u.create(ctx, h) }()
		eventually(t, "the dial", func() bool { return len(h.Dials()) > 1 })
		cancel()
		if a := <-done; !errors.Is(a.err, context.Canceled) || len(h.Requests()) != 1 {
			t.Errorf("got %+v", a)
		}
		u.works(u.Region(2))

		// A patient client gets through in the end.
		dials := len(h.Dials())
		go func() { done <- u.another().create(background, h) }()
		eventually(t, "the next dial", func() bool { return len(h.Dials()) > dials })
		b.Clear()
		if a := <-done; a.status != 200 {
			t.Errorf("after the fault: %+v", a)
		}
	})
	inBubble(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		h.BlackHole(cloudtest.For(5 * time.Minute))
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		if _, err := u.DialContext(ctx, "tcp", h.Name()+":443"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the dial: %v", err)
		}
		if a := u.create(background, h); a.took != 4*time.Minute || a.status != 200 {
			t.Errorf("after the fault: %+v", a)
		}
	})
}

func TestUnresolve(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		u.works(h)
		h.Unresolve(cloudtest.Times(1))
		u.works(h) // over the connection that is there
		var dns *net.DNSError
		if a := u.another().create(background, h); !errors.As(a.err, &dns) || !dns.IsNotFound {
			t.Errorf("got %+v", a)
		}
		u.another().works(h)
	})
}

// A frozen connection carries nothing, neither way, and does not say so; a new one works; and in the end all bytes arrive.
func TestFreeze(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		u.works(h)
		done := make(chan answer, 2)
		release := make(chan struct{})
		gate := h.Break(cloudtest.After(cloudtest.Answer(waitFor(release))), cloudtest.Times(1))

		// The answer of this one is on the server when the connection freezes.
		go func() { done <- u.create(background, h) }()
		eventually(t, "the whole request arrives", func() bool { return gate.Hits() == 1 && h.Requests()[1].Fault != "" })
		b := h.Freeze()
		if b.Hits() != 1 {
			t.Fatalf("%d connections frozen, want 1", b.Hits())
		}
		close(release)
		eventually(t, "the server has answered", func() bool { return h.Requests()[1].Answered })

		u.another().works(h)
		select {
		case a := <-done:
			t.Fatalf("the connection is not frozen: %+v", a)
		default:
		}
		b.Clear()
		if a := <-done; a.status != 200 || a.body != "released" {
			t.Errorf("after the fault: %+v", a)
		}
		u.works(h)
	})
}

// What a client sends into a frozen connection does not arrive either.
func TestFreezeStopsRequests(t *testing.T) {
	for _, opts := range [][]cloudtest.Option{nil, {cloudtest.HTTP1()}} {
		inBubble(t, func(t *testing.T, u *user) {
			h := u.Region(0)
			u.works(h)
			b := h.Freeze()
			ctx, cancel := context.WithTimeout(background, time.Minute)
			defer cancel()
			if a := u.create(ctx, h); a.took != time.Minute || !errors.Is(a.err, context.DeadlineExceeded) {
				t.Errorf("in a frozen connection: %+v", a)
			}
			if n := len(h.Requests()); n != 1 {
				t.Errorf("%d requests arrived, want the one before", n)
			}
			u.another().works(h)
			b.Clear()
			<-time.After(time.Second)
			u.works(h)
		}, opts...)
	}
}

// A reset does not get through a frozen connection, which is what a peer that died silently is like.
func TestFreezeHidesTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		u.works(h)
		h.Freeze()
		h.BlackHole()
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		if err := h.AwaitDisconnect(ctx); err != context.DeadlineExceeded || h.Connections() != 1 {
			t.Errorf("the client knows: it has %d connections, %v", h.Connections(), err)
		}
	})
}

func TestUnknownHosts(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		var dns *net.DNSError
		if a := u.get(background, "https://evil.example/"); !errors.As(a.err, &dns) {
			t.Errorf("got %+v", a)
		}
		gone := u.Region(2).Unresolve(nil) // at all times
		if a := u.get(background, "https://"+u.Region(2).Name()+"/"); !errors.As(a.err, &dns) {
			t.Errorf("a name that does not resolve: %+v", a)
		}
		gone.Clear()
		if a := u.get(background, "https://"+u.Region(0).Name()+":8443/"); !errors.Is(a.err, syscall.ECONNREFUSED) {
			t.Errorf("a port that is not open: %+v", a)
		}
		if strays := u.Strays(); len(strays) != 1 || strays[0] != "evil.example:443" {
			t.Errorf("strays: %q", strays)
		}
		for _, name := range []string{"Evil.Example.", "10.1.2.3"} {
			h, err := u.AddHost(name)
			if err != nil {
				t.Fatal(err)
			}
			u.works(h)
			if n := len(h.Requests()); n != 1 || !h.Requests()[0].Token {
				t.Errorf("%s: %+v", h, h.Requests())
			}
		}
		u.Forget()
		if len(u.Strays())+len(u.Requests())+len(u.Effects())+len(u.Region(0).Dials()) != 0 {
			t.Error("the record is not empty after Forget")
		}
	})
}

// Names are looked up as DNS does it.
func TestNames(t *testing.T) {
	u := newUser(t, start(t))
	for _, url := range []string{"https://DEMO.livekit.cloud/", "https://demo.livekit.cloud./", "https://demo.frankfurt.production.livekit.cloud/",
		"https://demo.tokyo.production.livekit.cloud/", "https://cloud-api.livekit.io/", "https://agents.livekit.cloud/"} {
		if a := u.get(background, url); a.status != 200 {
			t.Errorf("%s: %+v", url, a)
		}
	}
}

// A Cloud that serves plain HTTP serves HTTP/2 over TLS as before, whichever of the two is served first.
func TestPlainHTTPBesideHTTP2(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, u *user) {
			for _, h := range u.Regions() {
				if a := u.get(background, "https://"+h.Name()+cloudtest.RegionList); a.err != nil || a.status != 200 {
					t.Errorf("over TLS: %+v", a)
				}
				if a := u.get(background, "http://"+h.Name()+cloudtest.RegionList); a.err != nil || a.status != 200 {
					t.Errorf("in the clear: %+v", a)
				}
			}
			for _, q := range u.Requests() {
				if want := map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"}[q.TLS]; q.Proto != want {
					t.Errorf("TLS %t over %s, want %s", q.TLS, q.Proto, want)
				}
			}
		}, cloudtest.PlainHTTP())
	}
}
