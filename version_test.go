package lkrpc_test

import (
	"net/http"
	"os"
	"regexp"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

func TestVersionIsTheChangelogsNewest(t *testing.T) {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)\b`).FindSubmatch(text)
	if m == nil {
		t.Fatal("CHANGELOG.md has no heading of a version")
	}
	if newest := string(m[1]); newest != lkrpc.Version {
		t.Errorf("Version is %s, the newest in CHANGELOG.md is %s", lkrpc.Version, newest)
	}
}

// The User-Agent names the version, unless the caller has one of its own.
func TestUserAgent(t *testing.T) {
	for want, opts := range map[string][]lkrpc.Option{
		"lkrpc/" + lkrpc.Version: nil,
		"mine/1":                 {lkrpc.WithHeader(http.Header{"user-agent": {"mine/1"}})},
	} {
		rec := &recorder{}
		client := newTestClient(t, "h", rec, opts...)
		if _, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{}); err != nil {
			t.Fatal(err)
		}
		if got := rec.last(t).Header.Values("User-Agent"); len(got) != 1 || got[0] != want {
			t.Errorf("User-Agent %q, want %s", got, want)
		}
	}
}
