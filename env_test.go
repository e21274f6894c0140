package lkrpc_test

import (
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

func TestNewFromEnv(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1NiJ9.eyJ2aWRlbyI6e319.c2ln"
	for _, c := range []struct{ url, key, secret, token, says string }{
		{" wss://h ", " k ", " s ", "", ""},
		{"h", "", "", " " + token + "\n", ""},
		{"h", "k", "s", token, ""},
		{"", "k", "s", "", "LIVEKIT_URL"},
		{"   ", "k", "s", "", "LIVEKIT_URL"},
		{"h", "k", "", "", "LIVEKIT_API_SECRET"},
		{"h", "", "s", "", "LIVEKIT_API_KEY"},
		{"h", "k", "", token, "LIVEKIT_API_SECRET"},
		{"h", "", "", "", "LIVEKIT_API_KEY and LIVEKIT_API_SECRET are not set in the environment, nor is LIVEKIT_TOKEN"},
		{"ftp://h", "k", "s", "", "ftp"},
	} {
		t.Setenv("LIVEKIT_URL", c.url)
		t.Setenv("LIVEKIT_API_KEY", c.key)
		t.Setenv("LIVEKIT_API_SECRET", c.secret)
		t.Setenv("LIVEKIT_TOKEN", c.token)
		rec := &recorder{}
		client, err := lkrpc.NewFromEnv(lkrpc.WithHTTPTransport(rec))
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v, want an error that names %s", c, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if _, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{}); err != nil {
			t.Error(err)
		}
		r := rec.last(t)
		if r.URL.Host != "h" {
			t.Errorf("%+v: request to %s", c, r.URL.Host)
		}
		if fromToken := r.Header.Get("Authorization") == "Bearer "+token; fromToken != (strings.TrimSpace(c.key) == "") {
			t.Errorf("%+v: Authorization %s", c, r.Header.Get("Authorization"))
		}
		client.Close()
	}
}
