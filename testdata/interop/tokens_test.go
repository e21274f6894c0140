package interop

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	theirauth "github.com/livekit/protocol/auth"
	theirs "github.com/livekit/protocol/livekit"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

const (
	key    = "APIkey"
	secret = "a secret of more than thirty-two characters"
)

// Tokens made by either side, through the setters that both have, hold the same claims and verify on the other.
func TestTokens(t *testing.T) {
	for _, c := range claimCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			ours, err := mintOurs(t, c.Claims).ToJWT()
			if err != nil {
				t.Fatal(err)
			}
			other, err := mintTheirs(t, c.Claims).ToJWT()
			if err != nil {
				t.Fatal(err)
			}
			if a, b := payload(t, ours), payload(t, other); !reflect.DeepEqual(a, b) {
				t.Errorf("our payload is %v, theirs %v", a, b)
			}
			wantClaims(t, "ours, read by them", readTheirs(t, ours), c.Claims)
			wantClaims(t, "theirs, read by us", readOurs(t, other), c.Claims)
		})
	}
}

// The tokens that a client signs for its calls cross over too.
func TestCallTokens(t *testing.T) {
	creds := auth.APIKey(key, secret)
	for _, c := range claimCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			token, err := creds.Token(t.Context(), decode[auth.ClaimGrants](t, c.Claims))
			if err != nil {
				t.Fatal(err)
			}
			wantClaims(t, "read by them", readTheirs(t, token), c.Claims)
		})
	}
}

func TestOtherSecretIsRefused(t *testing.T) {
	claims := json.RawMessage(`{"video": {"roomList": true}}`)
	ours, err := mintOurs(t, claims).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	other, err := mintTheirs(t, claims).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	v, err := auth.ParseAPIToken(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Verify("another " + secret); err == nil {
		t.Error("we take their token with another secret")
	}
	w, err := theirauth.ParseAPIToken(ours)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Verify("another " + secret); err == nil {
		t.Error("they take our token with another secret")
	}
}

// A token is readable by whoever holds it: neither side puts secrets into one unless told to.
func TestSecretsInRoomConfig(t *testing.T) {
	for name, config := range map[string]string{
		"storage key": `{"egress": {"room": {"fileOutputs": [{"s3": {"accessKey": "a", "secret": "s", "bucket": "b"}}]}}}`,
		"stream key":  `{"egress": {"room": {"streamOutputs": [{"urls": ["rtmp://example.com/live/key"]}]}}}`,
		"no secret":   `{"metadata": "m"}`,
	} {
		t.Run(name, func(t *testing.T) {
			claims := json.RawMessage(`{"roomConfig": ` + config + `}`)
			_, ours := mintOurs(t, claims).ToJWT()
			_, other := mintTheirs(t, claims).ToJWT()
			if refused := name != "no secret"; (ours != nil) != refused || (other != nil) != refused {
				t.Errorf("we say %v, they say %v; want refused: %t", ours, other, refused)
			}
			allowed, err := mintOurs(t, claims).SetAllowSensitiveCredentials(true).ToJWT()
			if err != nil {
				t.Fatal(err)
			}
			wantClaims(t, "allowed", readTheirs(t, allowed), claims)
		})
	}
}

type claimCase struct {
	Name   string
	Claims json.RawMessage
}

func claimCases(t *testing.T) []claimCase {
	t.Helper()
	data, err := os.ReadFile("testdata/claims.json")
	if err != nil {
		t.Fatal(err)
	}
	return *decode[[]claimCase](t, data)
}

func mintOurs(t *testing.T, claims json.RawMessage) *auth.AccessToken {
	t.Helper()
	c := decode[auth.ClaimGrants](t, claims)
	token := auth.NewAccessToken(key, secret).
		SetIdentity(c.Identity).SetName(c.Name).SetMetadata(c.Metadata).SetAttributes(c.Attributes).
		SetRoomPreset(c.RoomPreset).SetSha256(c.Sha256).
		SetVideoGrant(c.Video).SetSIPGrant(c.SIP).SetAgentGrant(c.Agent).SetInferenceGrant(c.Inference).
		SetObservabilityGrant(c.Observability).SetAgentEndpointGrant(c.AgentEndpoint).
		SetAgentThreadGrant(c.AgentThread).SetAgentDatabaseGrant(c.AgentDatabase)
	if c.Kind != "" {
		token.SetKind(livekit.ParticipantInfo_SIP).
			SetKindDetails(livekit.ParticipantInfo_FORWARDED, livekit.ParticipantInfo_CLOUD_AGENT)
	}
	if c.RoomConfig != nil {
		token.SetRoomConfig(c.GetRoomConfiguration())
	}
	return token
}

func mintTheirs(t *testing.T, claims json.RawMessage) *theirauth.AccessToken {
	t.Helper()
	c := decode[theirauth.ClaimGrants](t, claims)
	token := theirauth.NewAccessToken(key, secret).
		SetIdentity(c.Identity).SetName(c.Name).SetMetadata(c.Metadata).SetAttributes(c.Attributes).
		SetRoomPreset(c.RoomPreset).SetSha256(c.Sha256).
		SetVideoGrant(c.Video).SetSIPGrant(c.SIP).SetAgentGrant(c.Agent).SetInferenceGrant(c.Inference).
		SetObservabilityGrant(c.Observability).SetAgentEndpointGrant(c.AgentEndpoint).
		SetAgentThreadGrant(c.AgentThread).SetAgentDatabaseGrant(c.AgentDatabase)
	if c.Kind != "" {
		token.SetKind(theirs.ParticipantInfo_SIP).
			SetKindDetail(theirs.ParticipantInfo_FORWARDED, theirs.ParticipantInfo_CLOUD_AGENT)
	}
	if c.RoomConfig != nil {
		token.SetRoomConfig(c.GetRoomConfiguration())
	}
	return token
}

// readOurs verifies a token with our verifier and returns its claims as JSON.
func readOurs(t *testing.T, token string) []byte {
	t.Helper()
	v, err := auth.ParseAPIToken(token)
	if err != nil {
		t.Fatal(err)
	}
	registered, claims, err := v.Verify(secret)
	if err != nil {
		t.Fatal(err)
	}
	if v.APIKey() != key || registered.Issuer != key || registered.Subject != claims.Identity {
		t.Errorf("we read key %q, issuer %q, subject %q", v.APIKey(), registered.Issuer, registered.Subject)
	}
	return encode(t, claims)
}

// readTheirs verifies a token with their verifier and returns its claims as JSON.
func readTheirs(t *testing.T, token string) []byte {
	t.Helper()
	v, err := theirauth.ParseAPIToken(token)
	if err != nil {
		t.Fatal(err)
	}
	registered, claims, err := v.Verify(secret)
	if err != nil {
		t.Fatal(err)
	}
	if v.APIKey() != key || registered.Issuer != key || registered.Subject != claims.Identity {
		t.Errorf("they read key %q, issuer %q, subject %q", v.APIKey(), registered.Issuer, registered.Subject)
	}
	return encode(t, claims)
}

func wantClaims(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !sameJSON(t, got, want) {
		t.Errorf("%s: the claims are\n%s\nwant\n%s", what, got, want)
	}
}

// payload returns the claims of a token as they stand in it, without the times of its making.
func payload(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts, want 3", len(parts))
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	claims := *decode[map[string]any](t, text)
	for _, name := range []string{"exp", "iat", "nbf"} {
		delete(claims, name)
	}
	return claims
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode[T any](t *testing.T, data []byte) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
	return v
}
