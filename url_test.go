package lkrpc_test

import (
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

func TestServerURL(t *testing.T) {
	var cases struct {
		Good []struct{ URL, Request string }
		Bad  []struct{ URL, Says string }
	}
	load(t, "urls.json", &cases)
	for _, c := range cases.Good {
		rec := &recorder{}
		client := newTestClient(t, c.URL, rec)
		if _, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{}); err != nil {
			t.Errorf("%q: %v", c.URL, err)
			continue
		}
		for _, r := range rec.requests() {
			if strings.HasPrefix(r.URL.Path, "/settings/") {
				continue
			}
			if got := r.URL.String(); got != c.Request {
				t.Errorf("%q: request to %s, want %s", c.URL, got, c.Request)
			}
		}
	}
	for _, c := range cases.Bad {
		client, err := lkrpc.New(c.URL, auth.APIKey(testKey, testSecret))
		if err == nil {
			t.Errorf("%q: no error, want one that says %q", c.URL, c.Says)
			client.Close()
			continue
		}
		if text := err.Error(); !strings.Contains(text, c.Says) {
			t.Errorf("%q: %v, want it to say %q", c.URL, err, c.Says)
		}
		host := strings.TrimSpace(c.URL[strings.LastIndexByte(c.URL, '@')+1:])
		if !strings.ContainsAny(host, "?#\"\n\u200b") && !strings.Contains(err.Error(), host) {
			t.Errorf("%q: %v, want it to name the value", c.URL, err)
		}
		if strings.Contains(err.Error(), "p4ssw0rd") {
			t.Errorf("%q: the error shows the password: %v", c.URL, err)
		}
	}
}

func TestCloudAgentHost(t *testing.T) {
	for _, c := range []struct{ server, env, want string }{
		{"wss://proj.livekit.cloud", "", "https://agents.livekit.cloud/twirp/livekit.CloudAgent/ListAgents"},
		{"https://a.b.LiveKit.cloud/base", "", "https://agents.livekit.cloud/twirp/livekit.CloudAgent/ListAgents"},
		{"proj.livekit.run", "", "https://agents.livekit.run/twirp/livekit.CloudAgent/ListAgents"},
		{"proj.livekit.cloud", "https://agents.example.com/x", "https://agents.example.com/x/twirp/livekit.CloudAgent/ListAgents"},
		{"localhost:7880", "localhost:9000", "http://localhost:9000/twirp/livekit.CloudAgent/ListAgents"},
		{"sfu.example.com", "", ""},
		{"livekit.cloud", "", ""},
		{"notlivekit.cloud", "", ""},
	} {
		t.Setenv("LK_AGENTS_URL", c.env)
		rec := &recorder{}
		client := newTestClient(t, c.server, rec)
		_, err := client.CloudAgent.ListAgents(background, &livekit.ListAgentsRequest{})
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), "LK_AGENTS_URL") || len(rec.requests()) != 0 {
				t.Errorf("%s: %v after %d requests, want a local error that names LK_AGENTS_URL", c.server, err, len(rec.requests()))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.server, err)
			continue
		}
		if got := rec.last(t).URL.String(); got != c.want {
			t.Errorf("%s: request to %s, want %s", c.server, got, c.want)
		}
	}
	t.Setenv("LK_AGENTS_URL", "ftp://x")
	if _, err := lkrpc.New("proj.livekit.cloud", auth.APIKey(testKey, testSecret)); err == nil || !strings.Contains(err.Error(), "LK_AGENTS_URL") {
		t.Errorf("a wrong LK_AGENTS_URL: %v, want an error that names it", err)
	}
}
