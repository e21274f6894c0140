package authpeer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	peer "github.com/livekit/protocol/auth"
	peerkit "github.com/livekit/protocol/livekit"
	"github.com/livekit/protocol/webhook"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// events are all that LiveKit sends, each with what it sends with it, and one that it does not send yet.
func events() []*livekit.WebhookEvent {
	room := &livekit.Room{Sid: "RM_1", Name: "studio ✓", CreationTime: 1_700_000_000, NumParticipants: 2, Metadata: `{"k":"<v>"}`}
	ann := &livekit.ParticipantInfo{Sid: "PA_1", Identity: "ann", State: livekit.ParticipantInfo_ACTIVE, Kind: livekit.ParticipantInfo_SIP,
		Attributes: map[string]string{"k": "v"}, Permission: &livekit.ParticipantPermission{CanPublish: true},
		DisconnectReason: livekit.DisconnectReason_CLIENT_INITIATED}
	track := &livekit.TrackInfo{Sid: "TR_1", Type: livekit.TrackType_VIDEO, Source: livekit.TrackSource_SCREEN_SHARE, Width: 1920}
	egress := &livekit.EgressInfo{EgressId: "EG_1", RoomName: "studio", Status: livekit.EgressStatus_EGRESS_COMPLETE,
		FileResults: []*livekit.FileInfo{{Filename: "f.mp4", Size: 1 << 40}}}
	ingress := &livekit.IngressInfo{IngressId: "IN_1", State: &livekit.IngressState{Status: livekit.IngressState_ENDPOINT_PUBLISHING}}
	job := &livekit.Job{Id: "AJ_1", DispatchId: "AD_1", AgentName: "scribe", State: &livekit.JobState{Status: livekit.JobStatus_JS_RUNNING}}
	all := []*livekit.WebhookEvent{
		{Event: webhook.EventRoomStarted, Room: room},
		{Event: webhook.EventRoomFinished, Room: room, RoomEndReason: 1},
		{Event: webhook.EventParticipantJoined, Room: room, Participant: ann},
		{Event: webhook.EventParticipantLeft, Room: room, Participant: ann},
		{Event: webhook.EventParticipantConnectionAborted, Room: room, Participant: ann},
		{Event: webhook.EventTrackPublished, Room: room, Participant: ann, Track: track},
		{Event: webhook.EventTrackUnpublished, Room: room, Participant: ann, Track: track},
		{Event: webhook.EventEgressStarted, EgressInfo: egress},
		{Event: webhook.EventEgressUpdated, EgressInfo: egress},
		{Event: webhook.EventEgressEnded, EgressInfo: egress},
		{Event: webhook.EventIngressStarted, IngressInfo: ingress},
		{Event: webhook.EventIngressEnded, IngressInfo: ingress},
		{Event: webhook.EventAgentJobPending, Room: room, Job: job},
		{Event: webhook.EventAgentJobStarted, Room: room, Job: job},
		{Event: webhook.EventAgentJobEnded, Room: room, Job: job},
		{Event: "new_thing", NumDropped: 3},
	}
	for i, e := range all {
		e.Id, e.CreatedAt = "EV_"+e.Event, int64(1_700_000_000+i)
	}
	return all
}

// received is how long a webhook may take from LiveKit's sender to a receiver in the same process.
const received = 30 * time.Second

// LiveKit's own sender posts each kind of event to our handler, which reads just what was sent.
func TestFromPeer(t *testing.T) {
	got := make(chan *livekit.WebhookEvent, 1)
	handler, err := auth.NewWebhookHandler(ourKeys, func(_ context.Context, event *livekit.WebhookEvent) error {
		got <- event
		return nil
	}, auth.OnWebhookError(func(_ *http.Request, err error) { t.Errorf("refused: %v", err) }))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	webhook.InitWebhookStats(nil) // without which the sender panics
	sender, err := webhook.NewDefaultNotifier(webhook.WebHookConfig{
		URLs: []string{server.URL}, APIKey: key, URLNotifier: webhook.DefaultURLNotifierConfig, ResourceURLNotifier: webhook.DefaultResourceURLNotifierConfig,
	}, peerKeys)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Stop(true)
	for _, event := range events() {
		if err := sender.QueueNotify(t.Context(), cross(t, event, &peerkit.WebhookEvent{})); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-got:
			if !proto.Equal(e, event) {
				t.Errorf("received %v, want %v", e, event)
			}
		case <-time.After(received):
			t.Fatalf("no %s came in %v", event.GetEvent(), received)
		}
	}
}

// What is signed with our tokens, LiveKit's receiver takes, and reads the same.
func TestToPeer(t *testing.T) {
	for _, event := range events() {
		body, err := protojson.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		got, err := webhook.ReceiveWebhookEvent(post(t, body), peerKeys)
		if err != nil {
			t.Errorf("%s: %v", event.GetEvent(), err)
			continue
		}
		if back := cross(t, got, &livekit.WebhookEvent{}); !proto.Equal(back, event) {
			t.Errorf("LiveKit reads %v, want %v", back, event)
		}
		if _, err := webhook.ReceiveWebhookEvent(post(t, body), peer.NewSimpleKeyProvider(key, "another")); err == nil {
			t.Errorf("%s: LiveKit takes it with another secret", event.GetEvent())
		}
	}
}

// A key provider of LiveKit's package serves here too, and the other way round.
func TestKeyProviders(t *testing.T) {
	var _ peer.KeyProvider = ourKeys
	var _ peer.KeyProvider = (*auth.FileBasedKeyProvider)(nil)
	if _, err := auth.ReceiveWebhook(post(t, []byte(`{"event":"room_started"}`)), peerKeys); err != nil {
		t.Error(err)
	}
	if _, err := webhook.Receive(post(t, []byte(`{"event":"room_started"}`)), ourKeys); err != nil {
		t.Error(err)
	}
}

// post is a webhook with our token.
func post(t testing.TB, body []byte) *http.Request {
	t.Helper()
	sum := sha256.Sum256(body)
	token, err := auth.NewAccessToken(key, secret).SetSha256(base64.StdEncoding.EncodeToString(sum[:])).SetValidFor(5 * time.Minute).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/webhook", bytes.NewReader(body))
	r.Header.Set("Authorization", token)
	r.Header.Set("Content-Type", webhook.ContentType)
	return r
}
