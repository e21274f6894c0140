package auth

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// defaultLifetime is how long a participant's token is valid: LiveKit's SDKs all have it.
const defaultLifetime = 6 * time.Hour

// AccessToken builds a token for a participant or for another server. Only what is set is written into it. The setters copy what
// they are given and return the AccessToken; what was wrong with it is the error of ToJWT.
//
// It is not safe for concurrent use while it is being changed. ToJWT changes nothing.
type AccessToken struct {
	signer         sealed[*signer]
	claims         ClaimGrants
	lifetime       time.Duration
	allowSensitive bool
	err            error // of the first setter that had one
}

// NewAccessToken begins a token that is signed with an API key and its secret. ToJWT says if one of them is empty.
func NewAccessToken(key, secret string) *AccessToken {
	return &AccessToken{signer: seal(newSigner(key, secret))}
}

// SetIdentity sets who the participant is. LiveKit lets no participant join without one; a second participant with the same
// identity takes the place of the first.
func (t *AccessToken) SetIdentity(identity string) *AccessToken {
	t.claims.Identity = identity
	return t
}

// SetName sets the name that others see.
func (t *AccessToken) SetName(name string) *AccessToken {
	t.claims.Name = name
	return t
}

// SetKind sets what sort of participant this is. Unset, it is a standard one.
func (t *AccessToken) SetKind(kind livekit.ParticipantInfo_Kind) *AccessToken {
	t.claims.Kind = strings.ToLower(kind.String())
	return t
}

// SetKindDetails says more about the kind, in place of what was said before.
func (t *AccessToken) SetKindDetails(details ...livekit.ParticipantInfo_KindDetail) *AccessToken {
	t.claims.KindDetails = nil
	for _, d := range details {
		t.claims.KindDetails = append(t.claims.KindDetails, strings.ToLower(d.String()))
	}
	return t
}

// SetVideoGrant sets what the holder may do with rooms, egress and ingress; nil: nothing.
func (t *AccessToken) SetVideoGrant(grant *VideoGrant) *AccessToken {
	t.claims.Video = grant.Clone()
	return t
}

// SetSIPGrant sets what the holder may do with SIP and phone numbers; nil: nothing.
func (t *AccessToken) SetSIPGrant(grant *SIPGrant) *AccessToken {
	t.claims.SIP = grant.Clone()
	return t
}

// SetAgentGrant sets what the holder may do with hosted agents and simulations; nil: nothing.
func (t *AccessToken) SetAgentGrant(grant *AgentGrant) *AccessToken {
	t.claims.Agent = grant.Clone()
	return t
}

// SetInferenceGrant sets what the holder may do with hosted models; nil: nothing.
func (t *AccessToken) SetInferenceGrant(grant *InferenceGrant) *AccessToken {
	t.claims.Inference = grant.Clone()
	return t
}

// SetObservabilityGrant sets what telemetry the holder may report; nil: none.
func (t *AccessToken) SetObservabilityGrant(grant *ObservabilityGrant) *AccessToken {
	t.claims.Observability = grant.Clone()
	return t
}

// SetAgentEndpointGrant sets which endpoints of agents the holder may call; nil: none.
func (t *AccessToken) SetAgentEndpointGrant(grant *AgentEndpointGrant) *AccessToken {
	t.claims.AgentEndpoint = grant.Clone()
	return t
}

// SetAgentThreadGrant sets what the holder may do with threads; nil: nothing.
func (t *AccessToken) SetAgentThreadGrant(grant *AgentThreadGrant) *AccessToken {
	t.claims.AgentThread = grant.Clone()
	return t
}

// SetAgentDatabaseGrant sets what the holder may do with databases of agents; nil: nothing.
func (t *AccessToken) SetAgentDatabaseGrant(grant *AgentDatabaseGrant) *AccessToken {
	t.claims.AgentDatabase = grant.Clone()
	return t
}

// SetMetadata sets the participant's metadata, which others see.
func (t *AccessToken) SetMetadata(metadata string) *AccessToken {
	t.claims.Metadata = metadata
	return t
}

// SetAttributes adds attributes of the participant, which others see. Those that were set before stay.
func (t *AccessToken) SetAttributes(attributes map[string]string) *AccessToken {
	if t.claims.Attributes == nil && len(attributes) > 0 {
		t.claims.Attributes = make(map[string]string, len(attributes))
	}
	maps.Copy(t.claims.Attributes, attributes)
	return t
}

// SetRoomConfig sets how the room is set up if the participant is the first in it, in place of what SetAgents set; nil: as the
// server does by itself. One with credentials makes ToJWT fail: see RoomConfiguration.CheckCredentials.
func (t *AccessToken) SetRoomConfig(config *livekit.RoomConfiguration) *AccessToken {
	t.refuseNil(config.GetAgents())
	t.claims.RoomConfig = (*RoomConfiguration)(config).Clone()
	return t
}

// SetAgents sets the agents to dispatch into the room if the participant is the first in it. The rest of the room configuration
// stays.
func (t *AccessToken) SetAgents(agents ...*livekit.RoomAgentDispatch) *AccessToken {
	t.refuseNil(agents)
	config := &livekit.RoomConfiguration{Agents: agents}
	agents = (*RoomConfiguration)(config).Clone().message().GetAgents()
	if t.claims.RoomConfig == nil {
		t.claims.RoomConfig = &RoomConfiguration{}
	}
	t.claims.RoomConfig.Agents = agents
	return t
}

// refuseNil notes a nil agent, which would otherwise be sent as the unnamed one.
func (t *AccessToken) refuseNil(agents []*livekit.RoomAgentDispatch) {
	if i := slices.Index(agents, nil); i >= 0 && t.err == nil {
		t.err = invalidClaim("roomConfig.agents[%d] is nil", i)
	}
}

// SetRoomPreset names a room configuration that is stored on LiveKit Cloud.
func (t *AccessToken) SetRoomPreset(preset string) *AccessToken {
	t.claims.RoomPreset = preset
	return t
}

// SetSha256 sets the base64 SHA-256 of a body that is sent with the token, as LiveKit does with webhooks.
func (t *AccessToken) SetSha256(sum string) *AccessToken {
	t.claims.Sha256 = sum
	return t
}

// SetValidFor sets the lifetime of the token: a second at least. Zero, the default, is six hours.
func (t *AccessToken) SetValidFor(lifetime time.Duration) *AccessToken {
	t.lifetime = lifetime
	return t
}

// SetAllowSensitiveCredentials says that the room configuration may hold storage secrets and stream keys. Whoever holds the
// token can read them, so this is for tokens that only servers see.
func (t *AccessToken) SetAllowSensitiveCredentials(allow bool) *AccessToken {
	t.allowSensitive = allow
	return t
}

// GetGrants returns a copy of the claims so far.
func (t *AccessToken) GetGrants() *ClaimGrants { return t.claims.Clone() }

// ToJWT signs the token. It is valid from a minute ago, since clocks differ, for the lifetime from now.
func (t *AccessToken) ToJWT() (string, error) {
	signer := t.signer.open()
	if signer == nil { // in the zero AccessToken
		signer = newSigner("", "")
	}
	if err := cmp.Or(signer.err, t.err); err != nil {
		return "", err
	}
	lifetime := t.lifetime
	switch {
	case lifetime == 0:
		lifetime = defaultLifetime
	case lifetime < shortestLifetime:
		return "", fmt.Errorf("%w: %v; a token is valid for %v at least", ErrInvalidLifetime, lifetime, shortestLifetime)
	}
	if !t.allowSensitive {
		if err := t.claims.RoomConfig.CheckCredentials(); err != nil {
			return "", err
		}
	}
	claims, err := encode(&t.claims)
	if err != nil {
		return "", err
	}
	return signer.sign(t.claims.Identity, claims, time.Now(), lifetime)
}

// String names the API key and the claims. It holds neither the secret nor the token.
func (t *AccessToken) String() string {
	key := ""
	if signer := t.signer.open(); signer != nil {
		key = signer.key
	}
	return fmt.Sprintf("auth.AccessToken(%s, %s)", key, &t.claims)
}

// Format prints String for every verb.
func (t *AccessToken) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.String()) }

// LogValue logs String.
func (t *AccessToken) LogValue() slog.Value { return slog.StringValue(t.String()) }
