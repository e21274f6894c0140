package auth

import (
	"slices"
	"strings"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// VideoGrant allows joining rooms and calling the room, egress and ingress APIs.
//
// A bool that is false allows nothing. The permissions that are pointers have a default, which nil stands for: publishing,
// subscribing and publishing data are allowed, the others are not. The Get methods resolve it, and say no for a nil grant; the Set
// methods set a value.
type VideoGrant struct {
	RoomCreate bool `json:"roomCreate,omitempty"` // to create and delete rooms
	RoomList   bool `json:"roomList,omitempty"`   // to list rooms
	RoomRecord bool `json:"roomRecord,omitempty"` // to start and manage egress

	RoomAdmin bool   `json:"roomAdmin,omitempty"` // to manage Room: its participants, tracks, data and agents
	RoomJoin  bool   `json:"roomJoin,omitempty"`  // to join Room
	Room      string `json:"room,omitempty"`      // the name of the room that RoomAdmin and RoomJoin hold for

	// CanPublish permits publishing tracks; nil: allowed.
	CanPublish *bool `json:"canPublish,omitempty"`
	// CanSubscribe permits receiving the tracks of others; nil: allowed.
	CanSubscribe *bool `json:"canSubscribe,omitempty"`
	// CanPublishData permits sending data; nil: as CanPublish.
	CanPublishData *bool `json:"canPublishData,omitempty"`
	// CanPublishSources are the sources of tracks that may be published where CanPublish is allowed: "camera", "microphone",
	// "screen_share", "screen_share_audio". Empty: all. See SetCanPublishSources.
	CanPublishSources []string `json:"canPublishSources,omitempty"`
	// CanUpdateOwnMetadata permits changing the own name, metadata and attributes; nil: not allowed.
	CanUpdateOwnMetadata *bool `json:"canUpdateOwnMetadata,omitempty"`

	IngressAdmin bool `json:"ingressAdmin,omitempty"` // to manage every ingress

	Hidden   bool `json:"hidden,omitempty"`   // other participants do not see this one
	Recorder bool `json:"recorder,omitempty"` // the room is shown as being recorded
	Agent    bool `json:"agent,omitempty"`    // to register as a worker that runs agents

	// CanSubscribeMetrics permits receiving metrics; nil: not allowed.
	CanSubscribeMetrics *bool `json:"canSubscribeMetrics,omitempty"`
	// CanManageAgentSession permits controlling an agent's session; nil: not allowed.
	CanManageAgentSession *bool `json:"canManageAgentSession,omitempty"`

	// DestinationRoom is the name of the room that participants of Room may be forwarded or moved to.
	DestinationRoom string `json:"destinationRoom,omitempty"`
}

// Clone returns a copy that shares nothing with v; it is nil for nil.
func (v *VideoGrant) Clone() *VideoGrant {
	c := clone(v)
	if c == nil {
		return nil
	}
	for _, p := range []**bool{&c.CanPublish, &c.CanSubscribe, &c.CanPublishData, &c.CanUpdateOwnMetadata, &c.CanSubscribeMetrics,
		&c.CanManageAgentSession} {
		*p = clone(*p)
	}
	c.CanPublishSources = slices.Clone(v.CanPublishSources)
	return c
}

// SetCanPublish sets CanPublish.
func (v *VideoGrant) SetCanPublish(allow bool) { v.CanPublish = &allow }

// SetCanSubscribe sets CanSubscribe.
func (v *VideoGrant) SetCanSubscribe(allow bool) { v.CanSubscribe = &allow }

// SetCanPublishData sets CanPublishData.
func (v *VideoGrant) SetCanPublishData(allow bool) { v.CanPublishData = &allow }

// SetCanUpdateOwnMetadata sets CanUpdateOwnMetadata.
func (v *VideoGrant) SetCanUpdateOwnMetadata(allow bool) { v.CanUpdateOwnMetadata = &allow }

// SetCanSubscribeMetrics sets CanSubscribeMetrics.
func (v *VideoGrant) SetCanSubscribeMetrics(allow bool) { v.CanSubscribeMetrics = &allow }

// SetCanManageAgentSession sets CanManageAgentSession.
func (v *VideoGrant) SetCanManageAgentSession(allow bool) { v.CanManageAgentSession = &allow }

// SetCanPublishSources sets CanPublishSources; without any, all sources are allowed. A value that the schema does not have
// makes ToJWT fail.
func (v *VideoGrant) SetCanPublishSources(allowed []livekit.TrackSource) {
	v.CanPublishSources = nil
	for _, source := range allowed {
		v.CanPublishSources = append(v.CanPublishSources, strings.ToLower(source.String()))
	}
}

// GetCanPublish tells whether tracks may be published: unless CanPublish says no.
func (v *VideoGrant) GetCanPublish() bool { return v != nil && or(v.CanPublish, true) }

// GetCanSubscribe tells whether tracks of others may be received: unless CanSubscribe says no.
func (v *VideoGrant) GetCanSubscribe() bool { return v != nil && or(v.CanSubscribe, true) }

// GetCanPublishData tells whether data may be sent: as CanPublishData says, else as GetCanPublish.
func (v *VideoGrant) GetCanPublishData() bool {
	return v != nil && or(v.CanPublishData, v.GetCanPublish())
}

// GetCanUpdateOwnMetadata tells whether the own metadata may be changed: only if CanUpdateOwnMetadata says so.
func (v *VideoGrant) GetCanUpdateOwnMetadata() bool {
	return v != nil && or(v.CanUpdateOwnMetadata, false)
}

// GetCanSubscribeMetrics tells whether metrics may be received: only if CanSubscribeMetrics says so.
func (v *VideoGrant) GetCanSubscribeMetrics() bool {
	return v != nil && or(v.CanSubscribeMetrics, false)
}

// GetCanManageAgentSession tells whether an agent's session may be controlled: only if CanManageAgentSession says so.
func (v *VideoGrant) GetCanManageAgentSession() bool {
	return v != nil && or(v.CanManageAgentSession, false)
}

// GetCanPublishSource tells whether tracks of this source may be published.
func (v *VideoGrant) GetCanPublishSource(source livekit.TrackSource) bool {
	if !v.GetCanPublish() {
		return false
	}
	return len(v.CanPublishSources) == 0 ||
		slices.ContainsFunc(v.CanPublishSources, func(name string) bool { return strings.EqualFold(name, source.String()) })
}

// GetCanPublishSources returns CanPublishSources as the API's enum, nil if there are none. A source that is unknown here
// becomes UNKNOWN, so that the list does not become empty, which would allow all.
func (v *VideoGrant) GetCanPublishSources() []livekit.TrackSource {
	if v == nil {
		return nil
	}
	var allowed []livekit.TrackSource
	for _, name := range v.CanPublishSources {
		source, _ := sources.parse(name)
		allowed = append(allowed, source)
	}
	return allowed
}

// or returns what a permission says, or its default.
func or(permission *bool, otherwise bool) bool {
	if permission == nil {
		return otherwise
	}
	return *permission
}
