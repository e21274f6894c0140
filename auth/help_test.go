package auth_test

import (
	"context"
	"crypto"
	"crypto/hmac"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

const (
	testKey    = "APItestkey"
	testSecret = "a-secret-for-tests-that-no-server-has"
)

var background = context.Background()

// kinds are all errors to test for, by name.
var kinds = map[string]error{
	"ErrKeysMissing":          auth.ErrKeysMissing,
	"ErrSensitiveCredentials": auth.ErrSensitiveCredentials,
	"ErrInvalidLifetime":      auth.ErrInvalidLifetime,
	"ErrInvalidClaim":         auth.ErrInvalidClaim,
	"ErrTokenMissing":         auth.ErrTokenMissing,
	"ErrTokenTooLong":         auth.ErrTokenTooLong,
	"ErrTokenMalformed":       auth.ErrTokenMalformed,
	"ErrTokenAlgorithm":       auth.ErrTokenAlgorithm,
	"ErrTokenIssuer":          auth.ErrTokenIssuer,
	"ErrTokenSignature":       auth.ErrTokenSignature,
	"ErrTokenNoExpiry":        auth.ErrTokenNoExpiry,
	"ErrTokenExpired":         auth.ErrTokenExpired,
	"ErrTokenNotYetValid":     auth.ErrTokenNotYetValid,
	"ErrNoAuthHeader":         auth.ErrNoAuthHeader,
	"ErrInvalidChecksum":      auth.ErrInvalidChecksum,
	"ErrWebhookNoBody":        auth.ErrWebhookNoBody,
	"ErrWebhookBodyRead":      auth.ErrWebhookBodyRead,
	"ErrWebhookTooLarge":      auth.ErrWebhookTooLarge,
	"ErrWebhookEncoding":      auth.ErrWebhookEncoding,
	"ErrWebhookMalformed":     auth.ErrWebhookMalformed,
}

// wantKind demands that an error is of the named kind and of no other, and that it shows no secret. "" is no error.
func wantKind(t *testing.T, err error, want string) {
	t.Helper()
	if want != "" && kinds[want] == nil {
		t.Fatalf("no error has the name %s", want)
	}
	if (err == nil) != (want == "") {
		t.Fatalf("error is %v, want %s", err, want)
	}
	for name, kind := range kinds {
		if errors.Is(err, kind) != (name == want) {
			t.Errorf("errors.Is(%q, %s) is %t, want %s", err, name, errors.Is(err, kind), want)
		}
	}
	if err != nil && strings.Contains(err.Error(), testSecret) {
		t.Errorf("the error shows the secret: %v", err)
	}
}

// readTable reads a table of cases.
func readTable(t testing.TB, name string, cases any) {
	t.Helper()
	data, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(cases); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// mint makes a token without the package under test.
func mint(t testing.TB, header, payload, secret string, hash crypto.Hash) string {
	t.Helper()
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(header)) + "." + enc.EncodeToString([]byte(payload))
	if hash == 0 {
		return text + "."
	}
	mac := hmac.New(hash.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + enc.EncodeToString(mac.Sum(nil))
}

// payloadOf returns the decoded payload of a token.
func payloadOf(t testing.TB, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no token", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var payload map[string]any
	if err := json.Unmarshal(text, &payload); err != nil {
		t.Fatal(err)
	}
	return payload
}

// sign is ToJWT without an error.
func sign(t testing.TB, token *auth.AccessToken) string {
	t.Helper()
	raw, err := token.ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// secretConfigs are room configurations with one secret each, by the path that an error names.
func secretConfigs() map[string]*livekit.RoomConfiguration {
	s3 := &livekit.S3Upload{AccessKey: "id", Bucket: "b", Secret: "hush-hush"}
	room := func(r *livekit.RoomCompositeEgressRequest) *livekit.RoomConfiguration {
		return &livekit.RoomConfiguration{Name: "n", Egress: &livekit.RoomEgress{Room: r}}
	}
	tracks := func(a *livekit.AutoTrackEgress) *livekit.RoomConfiguration {
		return &livekit.RoomConfiguration{Egress: &livekit.RoomEgress{Tracks: a}}
	}
	file := func(f *livekit.EncodedFileOutput) []*livekit.EncodedFileOutput {
		return []*livekit.EncodedFileOutput{{Filepath: "harmless"}, f}
	}
	return map[string]*livekit.RoomConfiguration{
		"egress.room.fileOutputs[1].s3.secret": room(&livekit.RoomCompositeEgressRequest{
			FileOutputs: file(&livekit.EncodedFileOutput{Output: &livekit.EncodedFileOutput_S3{S3: s3}})}),
		"egress.room.fileOutputs[1].gcp.credentials": room(&livekit.RoomCompositeEgressRequest{
			FileOutputs: file(&livekit.EncodedFileOutput{Output: &livekit.EncodedFileOutput_Gcp{Gcp: &livekit.GCPUpload{Credentials: "hush-hush"}}})}),
		"egress.room.segmentOutputs[0].azure.accountKey": room(&livekit.RoomCompositeEgressRequest{
			SegmentOutputs: []*livekit.SegmentedFileOutput{{Output: &livekit.SegmentedFileOutput_Azure{Azure: &livekit.AzureBlobUpload{AccountKey: "hush-hush"}}}}}),
		"egress.room.imageOutputs[0].aliOSS.secret": room(&livekit.RoomCompositeEgressRequest{
			ImageOutputs: []*livekit.ImageOutput{{Output: &livekit.ImageOutput_AliOSS{AliOSS: &livekit.AliOSSUpload{Secret: "hush-hush"}}}}}),
		"egress.room.streamOutputs[0]": room(&livekit.RoomCompositeEgressRequest{
			StreamOutputs: []*livekit.StreamOutput{{Urls: []string{"rtmp://live.example.com/x/hush-hush"}}}}),
		"egress.room.stream": room(&livekit.RoomCompositeEgressRequest{
			//lint:ignore SA1019 an old field can hold a secret too
			Output: &livekit.RoomCompositeEgressRequest_Stream{Stream: &livekit.StreamOutput{Destinations: []*livekit.StreamDestination{{Url: "srt://h?k=hush-hush"}}}}}),
		"egress.room.file.s3.sessionToken": room(&livekit.RoomCompositeEgressRequest{
			//lint:ignore SA1019 an old field can hold a secret too
			Output: &livekit.RoomCompositeEgressRequest_File{File: &livekit.EncodedFileOutput{
				Output: &livekit.EncodedFileOutput_S3{S3: &livekit.S3Upload{SessionToken: "hush-hush"}}}}}),
		"egress.room.customBaseUrl": room(&livekit.RoomCompositeEgressRequest{CustomBaseUrl: "https://user:hush-hush@example.com"}),
		"egress.room.webhooks[0].url": room(&livekit.RoomCompositeEgressRequest{
			Webhooks: []*livekit.WebhookConfig{{Url: "https://user:hush-hush@example.com/hook", SigningKey: "APIkey"}}}),
		"egress.participant.fileOutputs[0].s3.proxy.password": {Egress: &livekit.RoomEgress{Participant: &livekit.AutoParticipantEgress{
			FileOutputs: []*livekit.EncodedFileOutput{{Output: &livekit.EncodedFileOutput_S3{
				S3: &livekit.S3Upload{Proxy: &livekit.ProxyConfig{Url: "http://proxy", Password: "hush-hush"}}}}}}}},
		"egress.participant.segmentOutputs[0].gcp.proxy.url": {Egress: &livekit.RoomEgress{Participant: &livekit.AutoParticipantEgress{
			SegmentOutputs: []*livekit.SegmentedFileOutput{{Output: &livekit.SegmentedFileOutput_Gcp{
				Gcp: &livekit.GCPUpload{Proxy: &livekit.ProxyConfig{Url: "http://u:hush-hush@proxy"}}}}}}}},
		"egress.tracks.s3.secret":        tracks(&livekit.AutoTrackEgress{Output: &livekit.AutoTrackEgress_S3{S3: s3}}),
		"egress.tracks.gcp.credentials":  tracks(&livekit.AutoTrackEgress{Output: &livekit.AutoTrackEgress_Gcp{Gcp: &livekit.GCPUpload{Credentials: "hush-hush"}}}),
		"egress.tracks.azure.accountKey": tracks(&livekit.AutoTrackEgress{Output: &livekit.AutoTrackEgress_Azure{Azure: &livekit.AzureBlobUpload{AccountKey: "hush-hush"}}}),
		"egress.tracks.aliOSS.secret":    tracks(&livekit.AutoTrackEgress{Output: &livekit.AutoTrackEgress_AliOSS{AliOSS: &livekit.AliOSSUpload{Secret: "hush-hush"}}}),
		"egress.tracks.aliOSS.endpoint":  tracks(&livekit.AutoTrackEgress{Output: &livekit.AutoTrackEgress_AliOSS{AliOSS: &livekit.AliOSSUpload{Endpoint: "https://u:hush-hush@oss.example.com"}}}),
	}
}

// harmlessConfig is a room configuration with outputs that hold nothing secret.
func harmlessConfig() *livekit.RoomConfiguration {
	return &livekit.RoomConfiguration{
		Name: "studio", EmptyTimeout: 60, DepartureTimeout: 20, MaxParticipants: 5, Metadata: "room", SyncStreams: true,
		MinPlayoutDelay: 10, MaxPlayoutDelay: 20,
		Egress: &livekit.RoomEgress{
			Room: &livekit.RoomCompositeEgressRequest{
				Layout:        "grid",
				CustomBaseUrl: "https://layouts.example.com",
				FileOutputs: []*livekit.EncodedFileOutput{{
					FileType: livekit.EncodedFileType_MP4, Filepath: "out.mp4",
					Output: &livekit.EncodedFileOutput_S3{S3: &livekit.S3Upload{AccessKey: "id", Bucket: "b", AssumeRoleArn: "arn"}},
				}},
				Webhooks: []*livekit.WebhookConfig{{Url: "https://example.com/hook", SigningKey: testKey}},
			},
		},
		Agents: []*livekit.RoomAgentDispatch{{AgentName: "scribe", Metadata: "m"}, {AgentName: "host", Attributes: map[string]string{"k": "v"}}},
		Tags:   map[string]string{"t": "1"},
	}
}
