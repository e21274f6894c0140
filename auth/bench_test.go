package auth_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
)

// What a call of the client pays for its token, and a backend for a webhook. testdata/peers has the same beside LiveKit's own
// package.
//
//	go test -run '^$' -bench . -benchmem ./auth

// BenchmarkCallToken: the same room again and again, and a new room each time.
func BenchmarkCallToken(b *testing.B) {
	for _, c := range []struct {
		name string
		room func(i int) string
	}{
		{"same room", func(int) string { return "room" }},
		{"new room", func(i int) string { return fmt.Sprint("room-", i) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			creds := auth.APIKey(testKey, testSecret)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := creds.Token(background, &auth.ClaimGrants{Video: &auth.VideoGrant{RoomAdmin: true, Room: c.room(i)}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	raw := sign(b, auth.NewAccessToken(testKey, testSecret).SetIdentity("ann").SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio"}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := auth.VerifyToken(raw, webhookKeys); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReceiveWebhook(b *testing.B) {
	body := `{"event":"participant_joined","id":"EV_1","participant":{"identity":"ann","metadata":"` + strings.Repeat("m", 2<<10) + `"}}`
	header := signed(b, body)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/webhook", strings.NewReader(body))
		r.Header.Set("Authorization", header)
		if _, err := auth.ReceiveWebhook(r, webhookKeys); err != nil {
			b.Fatal(err)
		}
	}
}
