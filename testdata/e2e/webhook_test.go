package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/lkrpc/lkrpc/testdata/servers"
)

// The webhooks that a server sends are received and verified; with another secret they are refused.
func TestWebhooks(t *testing.T) {
	type received struct {
		event          *livekit.WebhookEvent
		err, wrongKeys error
	}
	var (
		keys, others auth.KeyProvider
		haveKeys     = make(chan struct{}) // closed when they are set: the server has its secret only once it runs
		events       = make(chan received, 64)
	)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-haveKeys
		body, err := io.ReadAll(r.Body)
		if err != nil {
			events <- received{err: err}
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, wrong := auth.ReceiveWebhook(r, others)
		r.Body = io.NopCloser(bytes.NewReader(body))
		event, err := auth.ReceiveWebhook(r, keys)
		events <- received{event, err, wrong}
	}))
	defer hook.Close()
	s, c := liveKit(t, servers.Webhooks(hook.URL))
	keys = auth.NewSimpleKeyProvider(s.Key, s.Secret)
	others = auth.NewSimpleKeyProvider(s.Key, "another secret than the server's")
	close(haveKeys)

	room, err := c.Room.CreateRoom(t.Context(), &livekit.CreateRoomRequest{Name: "hooked", Metadata: "wébhook"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Room.DeleteRoom(t.Context(), &livekit.DeleteRoomRequest{Room: "hooked"}); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, kind := range []string{"room_started", "room_finished"} {
		got := receive(t, "webhook", events)
		if got.err != nil {
			t.Fatal(got.err)
		}
		if got.wrongKeys == nil {
			t.Error("the webhook passes with another secret")
		}
		e := got.event
		if e.GetEvent() != kind || e.GetRoom().GetSid() != room.GetSid() || e.GetRoom().GetMetadata() != "wébhook" {
			t.Errorf("the event is %v, want %s of room %s", e, kind, room.GetSid())
		}
		if e.GetId() == "" || ids[e.GetId()] {
			t.Errorf("the event has id %q, want one of its own", e.GetId())
		}
		ids[e.GetId()] = true
	}
}
