package authpeer

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	peer "github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/webhook"
	"github.com/lkrpc/lkrpc/auth"
	"google.golang.org/protobuf/encoding/protojson"
)

// Both sides do the same work in one run: compare their lines with each other, not with another machine's.
//
//	go test -run '^$' -bench . -benchmem ./authpeer

// BenchmarkCallToken makes the token of a call that administers a room.
func BenchmarkCallToken(b *testing.B) {
	room := func(i int) string { return fmt.Sprint("room-", i) }
	creds := auth.APIKey(key, secret)
	ours := func(room string) (string, error) {
		return creds.Token(b.Context(), &auth.ClaimGrants{Video: &auth.VideoGrant{RoomAdmin: true, Room: room}})
	}
	theirs := func(room string) (string, error) {
		return peer.NewAccessToken(key, secret).SetVideoGrant(&peer.VideoGrant{RoomAdmin: true, Room: room}).ToJWT()
	}
	for name, c := range map[string]struct {
		token func(room string) (string, error)
		room  func(i int) string
	}{
		"lkrpc/new room":    {ours, room},
		"lkrpc/same room":   {ours, func(int) string { return "room" }},
		"livekit/new room":  {theirs, room},
		"livekit/same room": {theirs, func(int) string { return "room" }},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := c.token(c.room(i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerify reads and verifies a participant's token.
func BenchmarkVerify(b *testing.B) {
	raw, err := auth.NewAccessToken(key, secret).SetIdentity("ann").SetName("Ann").SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio"}).ToJWT()
	if err != nil {
		b.Fatal(err)
	}
	for name, verify := range map[string]func() error{
		"lkrpc": func() error {
			v, err := auth.ParseAPIToken(raw)
			if err == nil {
				_, _, err = v.Verify(secret)
			}
			return err
		},
		"livekit": func() error {
			v, err := peer.ParseAPIToken(raw)
			if err == nil {
				_, _, err = v.Verify(secret)
			}
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := verify(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReceiveWebhook receives a webhook of 2 KiB.
func BenchmarkReceiveWebhook(b *testing.B) {
	const size = 2 << 10
	event := events()[2]
	body, err := protojson.Marshal(event)
	if err != nil {
		b.Fatal(err)
	}
	event.Participant.Metadata = strings.Repeat("m", size-len(body)-len(`,"metadata":""`))
	if body, err = protojson.Marshal(event); err != nil {
		b.Fatal(err)
	}
	if len(body) < size-32 || len(body) > size+32 { // protojson puts in a blank here and there
		b.Fatalf("the body has %d bytes", len(body))
	}
	r := post(b, body)
	for name, receive := range map[string]func(*http.Request) error{
		"lkrpc": func(r *http.Request) error {
			event, err := auth.ReceiveWebhook(r, ourKeys)
			if err == nil && event.GetParticipant().GetIdentity() != "ann" {
				b.Error("the wrong event")
			}
			return err
		},
		"livekit": func(r *http.Request) error {
			event, err := webhook.ReceiveWebhookEvent(r, peerKeys)
			if err == nil && event.GetParticipant().GetIdentity() != "ann" {
				b.Error("the wrong event")
			}
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				again := httptest.NewRequest("POST", "/webhook", bytes.NewReader(body))
				again.Header = r.Header
				if err := receive(again); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
