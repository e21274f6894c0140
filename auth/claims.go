package auth

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// ClaimGrants are the claims of an access token that are LiveKit's own: who the holder is and what it may do. A field with its
// zero value is not written. The registered claims of the token (issuer, times) are not here: they follow from the key and the
// lifetime.
//
// Its JSON is that of the token's payload.
type ClaimGrants struct {
	// Identity tells participants of a room apart: a second one with the same identity takes the place of the first. It is also
	// the token's subject.
	Identity string `json:"identity,omitempty"`
	// Name is the participant's, for people to see.
	Name string `json:"name,omitempty"`
	// Kind is what sort of participant this is, in lower case: "standard" (the default), "agent", "sip", … See GetParticipantKind.
	Kind string `json:"kind,omitempty"`
	// KindDetails say more about the kind, in lower case. See GetKindDetails.
	KindDetails []string `json:"kindDetails,omitempty"`

	Video         *VideoGrant         `json:"video,omitempty"`
	SIP           *SIPGrant           `json:"sip,omitempty"`
	Agent         *AgentGrant         `json:"agent,omitempty"`
	Inference     *InferenceGrant     `json:"inference,omitempty"`
	Observability *ObservabilityGrant `json:"observability,omitempty"`
	AgentEndpoint *AgentEndpointGrant `json:"agentEndpoint,omitempty"`
	AgentThread   *AgentThreadGrant   `json:"agentThread,omitempty"`
	AgentDatabase *AgentDatabaseGrant `json:"agentDatabase,omitempty"`

	// RoomConfig is how the room is set up if this participant is the first in it, the agents to dispatch into it included.
	RoomConfig *RoomConfiguration `json:"roomConfig,omitempty"`
	// RoomPreset names a configuration that is stored on LiveKit Cloud. What RoomConfig sets overrides it.
	RoomPreset string `json:"roomPreset,omitempty"`
	// Sha256 is the base64 SHA-256 of the body that the token was sent with, as in webhooks.
	Sha256 string `json:"sha256,omitempty"`
	// Metadata is the participant's, of any form; other participants see it.
	Metadata string `json:"metadata,omitempty"`
	// Attributes are the participant's; other participants see them.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Clone returns a copy that shares nothing with c. It is nil for nil.
func (c *ClaimGrants) Clone() *ClaimGrants {
	if c == nil {
		return nil
	}
	clone := *c
	clone.KindDetails = slices.Clone(c.KindDetails)
	clone.Video = c.Video.Clone()
	clone.SIP = c.SIP.Clone()
	clone.Agent = c.Agent.Clone()
	clone.Inference = c.Inference.Clone()
	clone.Observability = c.Observability.Clone()
	clone.AgentEndpoint = c.AgentEndpoint.Clone()
	clone.AgentThread = c.AgentThread.Clone()
	clone.AgentDatabase = c.AgentDatabase.Clone()
	clone.RoomConfig = c.RoomConfig.Clone()
	clone.Attributes = maps.Clone(c.Attributes)
	return &clone
}

// GetParticipantKind returns Kind as the API's enum: STANDARD where it is empty or unknown.
func (c *ClaimGrants) GetParticipantKind() livekit.ParticipantInfo_Kind {
	if c == nil {
		return livekit.ParticipantInfo_STANDARD
	}
	kind, _ := kinds.parse(c.Kind)
	return kind
}

// GetKindDetails returns KindDetails as the API's enum, without those that are unknown.
func (c *ClaimGrants) GetKindDetails() []livekit.ParticipantInfo_KindDetail {
	if c == nil {
		return nil
	}
	var details []livekit.ParticipantInfo_KindDetail
	for _, name := range c.KindDetails {
		if d, ok := kindDetails.parse(name); ok {
			details = append(details, d)
		}
	}
	return details
}

// GetRoomConfiguration returns RoomConfig as the API's message, nil if there is none. It is not a copy.
func (c *ClaimGrants) GetRoomConfiguration() *livekit.RoomConfiguration {
	if c == nil {
		return nil
	}
	return (*livekit.RoomConfiguration)(c.RoomConfig)
}

// String returns the claims as JSON, with secrets in the room configuration hidden.
func (c *ClaimGrants) String() string {
	if c == nil {
		return "<nil>"
	}
	shown := *c
	shown.RoomConfig = c.RoomConfig.hideSecrets()
	text, err := json.Marshal(&shown)
	if err != nil {
		return "claims that cannot be written: " + err.Error()
	}
	return string(text)
}

// Format prints String for every verb.
func (c *ClaimGrants) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue logs String.
func (c *ClaimGrants) LogValue() slog.Value { return slog.StringValue(c.String()) }
