package cloudtest_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

func pass(d time.Duration) { <-time.After(d) }

// The URL of an IPv6 address has brackets.
func TestURLOfAnAddress(t *testing.T) {
	u := newUser(t, start(t))
	h, err := u.AddHost("::1")
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err := url.Parse(h.URL()); err != nil || parsed.Hostname() != "::1" {
		t.Errorf("it is %q: %v", h.URL(), err)
	}
	if a := u.get(background, h.URL()+"/"); a.err != nil {
		t.Errorf("nobody is there: %v", a.err)
	}
}

func TestForgetWhileACallIsRunning(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		h.Break(cloudtest.Delay(time.Second))
		go u.create(background, h)
		pass(500 * time.Millisecond)
		u.Forget()
		pass(time.Second)
		if n, effects := len(u.Requests()), u.Effects(); n != 0 || len(effects) != 0 {
			t.Errorf("%d requests, effects %+v", n, effects)
		}
	})
}

// A participant who was moved leaves the other room when the connection ends.
func TestMovedParticipantLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		resp, err := u.upgrade(u.Region(0))
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp, err)
		}
		joinOf(t, resp.Body)
		move := &livekit.MoveParticipantRequest{Room: "room", Identity: "me", DestinationRoom: "other"}
		if _, err := u.rooms(u.Region(0)).MoveParticipant(background, move); err != nil {
			t.Fatal(err)
		}
		admin := *u
		admin.token = u.tokenFor(&auth.ClaimGrants{Video: &auth.VideoGrant{RoomAdmin: true, Room: "other"}})
		in := func() int {
			list, err := admin.rooms(u.Region(0)).ListParticipants(background, &livekit.ListParticipantsRequest{Room: "other"})
			if err != nil {
				t.Error(err)
			}
			return len(list.GetParticipants())
		}
		if n := in(); n != 1 {
			t.Errorf("%d participants in the other room", n)
		}
		resp.Body.Close()
		pass(time.Second)
		if n := in(); n != 0 {
			t.Errorf("%d participants are left", n)
		}
	})
}

func TestOverlappingFreezes(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		u.works(h)
		one, two := h.Freeze(), h.Freeze()
		one.Clear()
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		if a := u.create(ctx, h); a.err == nil {
			t.Errorf("one freeze of two is cleared, and the connection works: %d", a.status)
		}
		two.Clear()
		pass(time.Second)
		u.works(h)
	})
}

// Freeze and Heal at once: when all is healed, every connection works.
func TestFreezeWhileHealing(t *testing.T) {
	u := newUser(t, start(t, cloudtest.InMemory(), cloudtest.PlainHTTP()))
	h := u.Region(0)
	var conns []net.Conn
	for range 20 {
		conn, err := u.DialContext(background, "tcp", h.Name()+":80")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for round := range 100 {
		frozen := make(chan struct{})
		go func() {
			h.Freeze()
			close(frozen)
		}()
		for over := false; !over; {
			h.Heal()
			select {
			case <-frozen:
				over = true
			default:
			}
		}
		h.Heal()
		for _, conn := range conns {
			conn.SetDeadline(time.Now().Add(10 * time.Second)) // far more than a busy machine needs
			io.WriteString(conn, "HEAD / HTTP/1.1\r\nHost: "+h.Name()+"\r\n\r\n")
			if _, err := conn.Read(make([]byte, 1000)); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
}
