package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/lkrpc/lkrpc/testdata/servers"
)

// sentWebhook is a webhook as it came over the wire, and what our handler made of it.
type sentWebhook struct {
	header http.Header
	body   []byte
	event  *livekit.WebhookEvent
}

// The webhooks that a real livekit-server sends are received and verified, with the key that signed them and no other.
func TestWebhooks(t *testing.T) {
	// The server needs the URL at its start and we need its secret, so the handler comes last.
	var handler http.Handler
	ready := make(chan struct{})
	sent := make(chan sentWebhook, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-ready
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(receiver.Close)
	s, c := liveKit(t, servers.Webhooks(receiver.URL+"/webhook"))
	keys := auth.NewSimpleKeyProvider(s.Key, s.Secret)
	type wireKey struct{}
	inner, err := auth.NewWebhookHandler(keys, func(ctx context.Context, event *livekit.WebhookEvent) error {
		wire := ctx.Value(wireKey{}).(sentWebhook)
		wire.event = event
		sent <- wire
		return nil
	}, auth.OnWebhookError(func(_ *http.Request, err error) { t.Errorf("a webhook of livekit-server is refused: %v", err) }))
	if err != nil {
		t.Fatal(err)
	}
	handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read: %v", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), wireKey{}, sentWebhook{header: r.Header.Clone(), body: body})))
	})
	close(ready)

	ctx := t.Context()
	room, err := c.Room.CreateRoom(ctx, &livekit.CreateRoomRequest{Name: "studio ✓", Metadata: "m"})
	if err != nil {
		t.Fatal(err)
	}
	started := receive(t, "webhook", sent)
	if e := started.event; e.GetEvent() != "room_started" || e.GetRoom().GetSid() != room.GetSid() || e.GetRoom().GetName() != "studio ✓" ||
		e.GetRoom().GetMetadata() != "m" || e.GetId() == "" || e.GetCreatedAt() == 0 {
		t.Errorf("the first event is %v, want the start of the room %v", e, room)
	}
	if ct := started.header.Get("Content-Type"); ct != "application/webhook+json" {
		t.Errorf("the content type is %q", ct)
	}
	misuse(t, s, started)

	token, err := auth.NewAccessToken(s.Key, s.Secret).SetIdentity("ann").SetAttributes(map[string]string{"k": "v"}).
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio ✓"}).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	join(t, s.URL, token)
	if _, err := c.Room.DeleteRoom(ctx, &livekit.DeleteRoomRequest{Room: "studio ✓"}); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{started.event.GetId(): true}
	for {
		e := receive(t, "webhook", sent).event
		if ids[e.GetId()] || e.GetId() == "" {
			t.Errorf("two events have the id %q", e.GetId())
		}
		ids[e.GetId()] = true
		if p := e.GetParticipant(); p != nil && (p.GetIdentity() != "ann" || p.GetAttributes()["k"] != "v") {
			t.Errorf("%s is about %v, want ann", e.GetEvent(), p)
		}
		if e.GetEvent() == "room_finished" {
			break
		}
	}
}

// misuse does to a real webhook what somebody on the way could do.
func misuse(t *testing.T, s servers.LiveKitServer, w sentWebhook) {
	t.Helper()
	keys := auth.NewSimpleKeyProvider(s.Key, s.Secret)
	header := w.header.Get("Authorization")
	if err := auth.VerifyWebhook(header, w.body, keys); err != nil {
		t.Errorf("the body that was kept: %v", err)
	}
	changed := bytes.Replace(w.body, []byte("studio"), []byte("studip"), 1)
	if err := auth.VerifyWebhook(header, changed, keys); !errors.Is(err, auth.ErrInvalidChecksum) {
		t.Errorf("another room: %v", err)
	}
	if err := auth.VerifyWebhook(header, w.body, auth.NewSimpleKeyProvider(s.Key, "another-secret")); !errors.Is(err, auth.ErrTokenSignature) {
		t.Errorf("another secret: %v", err)
	}
	if err := auth.VerifyWebhook(header, w.body, auth.NewSimpleKeyProvider("APIother", s.Secret)); !errors.Is(err, auth.ErrTokenIssuer) {
		t.Errorf("another key: %v", err)
	}
}
