package authpeer

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	peer "github.com/livekit/protocol/auth"
	peerkit "github.com/livekit/protocol/livekit"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
)

// Every combination of the permissions that have defaults means the same on both sides.
func TestDefaults(t *testing.T) {
	pointers := []string{"CanPublish", "CanSubscribe", "CanPublishData", "CanUpdateOwnMetadata", "CanSubscribeMetrics", "CanManageAgentSession"}
	states := []*bool{nil, new(bool), new(bool)}
	*states[2] = true
	total := 1
	for range pointers {
		total *= len(states)
	}
	for n := range total {
		ours := &auth.VideoGrant{Hidden: n%2 == 0, Recorder: n%3 == 0, Agent: n%5 == 0}
		if n%7 == 0 {
			ours.CanPublishSources = []string{"camera", "screen_share", "nonsense"}
		}
		rest := n
		for _, name := range pointers {
			reflect.ValueOf(ours).Elem().FieldByName(name).Set(reflect.ValueOf(states[rest%3]))
			rest /= 3
		}
		theirs := convert[peer.VideoGrant](t, ours)
		for source := range livekit.TrackSource_name {
			if ours.GetCanPublishSource(livekit.TrackSource(source)) != theirs.GetCanPublishSource(peerkit.TrackSource(source)) {
				t.Errorf("%+v: source %d differs", ours, source)
			}
		}
		permission := ours.ToPermission()
		if b := cross(t, theirs.ToPermission(), &livekit.ParticipantPermission{}); !proto.Equal(permission, b) {
			t.Errorf("%+v is the permission %v, LiveKit's %v", ours, permission, b)
		}
		other := cross(t, permission, &peerkit.ParticipantPermission{})
		if !ours.MatchesPermission(permission) || !theirs.MatchesPermission(other) {
			t.Errorf("%+v does not match its permission on both sides", ours)
		}
		ours, theirs = &auth.VideoGrant{Room: "r"}, &peer.VideoGrant{Room: "r"}
		ours.UpdateFromPermission(permission)
		theirs.UpdateFromPermission(other)
		if len(theirs.CanPublishSources) == 0 { // it makes an empty list, which is not written either
			theirs.CanPublishSources = nil
		}
		if !reflect.DeepEqual(convert[peer.VideoGrant](t, ours), theirs) {
			t.Errorf("%v gave %+v, LiveKit's %+v", permission, ours, theirs)
		}
	}
}

// Room configurations with secrets: what LiveKit refuses is refused, and what both allow is the same token.
func TestSecrets(t *testing.T) {
	s3 := &livekit.S3Upload{AccessKey: "id", Secret: "hush"}
	gcp := &livekit.GCPUpload{Credentials: "hush"}
	azure := &livekit.AzureBlobUpload{AccountName: "a", AccountKey: "hush"}
	oss := &livekit.AliOSSUpload{AccessKey: "id", Secret: "hush"}
	files := []*livekit.EncodedFileOutput{
		{Output: &livekit.EncodedFileOutput_S3{S3: s3}}, {Output: &livekit.EncodedFileOutput_Gcp{Gcp: gcp}},
		{Output: &livekit.EncodedFileOutput_Azure{Azure: azure}}, {Output: &livekit.EncodedFileOutput_AliOSS{AliOSS: oss}},
	}
	segments := []*livekit.SegmentedFileOutput{
		{Output: &livekit.SegmentedFileOutput_S3{S3: s3}}, {Output: &livekit.SegmentedFileOutput_Gcp{Gcp: gcp}},
		{Output: &livekit.SegmentedFileOutput_Azure{Azure: azure}}, {Output: &livekit.SegmentedFileOutput_AliOSS{AliOSS: oss}},
	}
	tracks := []*livekit.AutoTrackEgress{
		{Output: &livekit.AutoTrackEgress_S3{S3: s3}}, {Output: &livekit.AutoTrackEgress_Gcp{Gcp: gcp}},
		{Output: &livekit.AutoTrackEgress_Azure{Azure: azure}}, {Output: &livekit.AutoTrackEgress_AliOSS{AliOSS: oss}},
	}
	images := []*livekit.ImageOutput{
		{Output: &livekit.ImageOutput_S3{S3: s3}}, {Output: &livekit.ImageOutput_Gcp{Gcp: gcp}},
		{Output: &livekit.ImageOutput_Azure{Azure: azure}}, {Output: &livekit.ImageOutput_AliOSS{AliOSS: oss}},
	}
	type refusal struct {
		name       string
		egress     *livekit.RoomEgress
		ours, peer bool // refused
	}
	room := func(r *livekit.RoomCompositeEgressRequest) *livekit.RoomEgress { return &livekit.RoomEgress{Room: r} }
	var cases []refusal
	for i := range files {
		cases = append(cases,
			refusal{fmt.Sprint("room file ", i), room(&livekit.RoomCompositeEgressRequest{FileOutputs: files[i : i+1]}), true, true},
			refusal{fmt.Sprint("room segments ", i), room(&livekit.RoomCompositeEgressRequest{SegmentOutputs: segments[i : i+1]}), true, true},
			refusal{fmt.Sprint("room image ", i), room(&livekit.RoomCompositeEgressRequest{ImageOutputs: images[i : i+1]}), true, false}, // LiveKit does not look into these
			refusal{fmt.Sprint("participant file ", i), &livekit.RoomEgress{Participant: &livekit.AutoParticipantEgress{FileOutputs: files[i : i+1]}}, true, true},
			refusal{fmt.Sprint("participant segments ", i), &livekit.RoomEgress{Participant: &livekit.AutoParticipantEgress{SegmentOutputs: segments[i : i+1]}}, true, true},
			refusal{fmt.Sprint("tracks ", i), &livekit.RoomEgress{Tracks: tracks[i]}, true, true},
		)
	}
	cases = append(cases,
		refusal{"stream", room(&livekit.RoomCompositeEgressRequest{StreamOutputs: []*livekit.StreamOutput{{Urls: []string{"rtmp://h/key"}}}}), true, true},
		refusal{"empty stream", room(&livekit.RoomCompositeEgressRequest{StreamOutputs: []*livekit.StreamOutput{{}}}), true, true},
		refusal{"session token", room(&livekit.RoomCompositeEgressRequest{FileOutputs: []*livekit.EncodedFileOutput{
			{Output: &livekit.EncodedFileOutput_S3{S3: &livekit.S3Upload{SessionToken: "hush"}}}}}), true, false},
		refusal{"proxy password", room(&livekit.RoomCompositeEgressRequest{FileOutputs: []*livekit.EncodedFileOutput{
			{Output: &livekit.EncodedFileOutput_Gcp{Gcp: &livekit.GCPUpload{Proxy: &livekit.ProxyConfig{Password: "hush"}}}}}}), true, false},
		refusal{"no egress", nil, false, false},
		refusal{"bucket", &livekit.RoomEgress{Tracks: &livekit.AutoTrackEgress{Output: &livekit.AutoTrackEgress_S3{S3: &livekit.S3Upload{AccessKey: "id", Bucket: "b"}}}}, false, false},
		refusal{"webhook", room(&livekit.RoomCompositeEgressRequest{Webhooks: []*livekit.WebhookConfig{{Url: "https://h", SigningKey: key}}}), false, false},
	)
	for _, c := range cases {
		config := &livekit.RoomConfiguration{Egress: c.egress}
		_, ourErr := auth.NewAccessToken(key, secret).SetRoomConfig(config).ToJWT()
		_, peerErr := peer.NewAccessToken(key, secret).SetRoomConfig(toPeer(t, config)).ToJWT()
		if errors.Is(ourErr, auth.ErrSensitiveCredentials) != c.ours || errors.Is(peerErr, peer.ErrSensitiveCredentials) != c.peer {
			t.Errorf("%s: ours %v, LiveKit's %v", c.name, ourErr, peerErr)
		}
		ours, err := auth.NewAccessToken(key, secret).SetRoomConfig(config).SetAllowSensitiveCredentials(true).ToJWT()
		if err != nil {
			t.Fatal(err)
		}
		v, err := peer.ParseAPIToken(ours)
		if err != nil {
			t.Fatal(err)
		}
		_, read, err := v.Verify(secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := fromPeer(t, read.GetRoomConfiguration()); !proto.Equal(got, config) {
			t.Errorf("%s: LiveKit reads %v, want %v", c.name, got, config)
		}
	}
}
