package cloudtest

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
)

func errNoParticipant() error { return twirp.NotFoundError("participant does not exist") }

// find returns a participant's place in the room, -1 if there is none.
func (r *room) find(identity string) int {
	for i, p := range r.participants {
		if p.GetIdentity() == identity {
			return i
		}
	}
	return -1
}

// take removes a participant and returns it, nil if there is none.
func (r *room) take(identity string) *livekit.ParticipantInfo {
	i := r.find(identity)
	if i < 0 {
		return nil
	}
	p := r.participants[i]
	r.participants = append(r.participants[:i:i], r.participants[i+1:]...)
	return p
}

// at returns a participant of a room, nil if there is none. mu is held.
func (s *state) at(name, identity string) *livekit.ParticipantInfo {
	if r := s.rooms[name]; r != nil {
		if i := r.find(identity); i >= 0 {
			return r.participants[i]
		}
	}
	return nil
}

// enter puts a participant into a room, which is made if there is none. One of the same identity leaves. mu is held.
func (s *state) enter(name string, p *livekit.ParticipantInfo) {
	r := s.rooms[name]
	if r == nil {
		r = s.open(&livekit.CreateRoomRequest{Name: name})
	}
	r.take(p.GetIdentity())
	r.participants = append(r.participants, p)
}

// AddParticipant puts a participant into a room, which is made if there is none. The identity is required; what else LiveKit
// would fill in is filled in where it is missing. One of the same identity is replaced.
func (c *Cloud) AddParticipant(room string, p *livekit.ParticipantInfo) error {
	if room == "" || p.GetIdentity() == "" {
		return errors.New("cloudtest: a participant needs a room and an identity")
	}
	p = proto.CloneOf(p)
	now := time.Now()
	if p.Sid == "" {
		p.Sid = newID("PA_")
	}
	if p.JoinedAt == 0 {
		p.JoinedAt, p.JoinedAtMs = now.Unix(), now.UnixMilli()
	}
	if p.State == livekit.ParticipantInfo_JOINING {
		p.State = livekit.ParticipantInfo_ACTIVE
	}
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	c.state.enter(room, p)
	return nil
}

// connect is AddParticipant for a connection. join is what it is told; leave takes the participant out again, if it is still
// the same one, of whatever room it was moved to.
func (s *state) connect(name, identity, shown, metadata, region string) (join joined, leave func()) {
	now := time.Now()
	p := &livekit.ParticipantInfo{
		Sid: newID("PA_"), Identity: identity, Name: shown, Metadata: metadata, Region: region, State: livekit.ParticipantInfo_ACTIVE,
		JoinedAt: now.Unix(), JoinedAtMs: now.UnixMilli(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(name, p)
	join = joined{region: region, room: s.rooms[name].view(), me: proto.CloneOf(p)}
	for _, other := range s.rooms[name].participants {
		if other != p {
			join.others = append(join.others, proto.CloneOf(other))
		}
	}
	return join, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for name, r := range s.rooms {
			if s.at(name, identity) == p {
				r.take(identity)
			}
		}
	}
}

// ListParticipants lists who is in a room; nobody is in one that does not exist.
func (s roomService) ListParticipants(_ context.Context, req *livekit.ListParticipantsRequest) (*livekit.ListParticipantsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &livekit.ListParticipantsResponse{}
	if r := s.rooms[req.GetRoom()]; r != nil {
		for _, p := range r.participants {
			list.Participants = append(list.Participants, proto.CloneOf(p))
		}
	}
	return list, nil
}

// GetParticipant returns one participant.
func (s roomService) GetParticipant(_ context.Context, req *livekit.RoomParticipantIdentity) (*livekit.ParticipantInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.at(req.GetRoom(), req.GetIdentity())
	if p == nil {
		return nil, errNoParticipant()
	}
	return proto.CloneOf(p), nil
}

// RemoveParticipant takes a participant out of a room.
func (s roomService) RemoveParticipant(_ context.Context, req *livekit.RoomParticipantIdentity) (*livekit.RemoveParticipantResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at(req.GetRoom(), req.GetIdentity()) == nil {
		return nil, errNoParticipant()
	}
	s.rooms[req.GetRoom()].take(req.GetIdentity())
	return &livekit.RemoveParticipantResponse{}, nil
}

// MutePublishedTrack mutes or unmutes a track.
func (s roomService) MutePublishedTrack(_ context.Context, req *livekit.MuteRoomTrackRequest) (*livekit.MuteRoomTrackResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, track := range s.at(req.GetRoom(), req.GetIdentity()).GetTracks() {
		if track.GetSid() == req.GetTrackSid() {
			track.Muted = req.GetMuted()
			return &livekit.MuteRoomTrackResponse{Track: proto.CloneOf(track)}, nil
		}
	}
	return nil, twirp.NotFoundError("track is not found")
}

// UpdateParticipant changes what the request sets. An attribute without a value is deleted.
func (s roomService) UpdateParticipant(_ context.Context, req *livekit.UpdateParticipantRequest) (*livekit.ParticipantInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.at(req.GetRoom(), req.GetIdentity())
	if p == nil {
		return nil, errNoParticipant()
	}
	if req.GetName() != "" {
		p.Name = req.GetName()
	}
	if req.GetMetadata() != "" {
		p.Metadata = req.GetMetadata()
	}
	if req.GetPermission() != nil {
		p.Permission = proto.CloneOf(req.GetPermission())
	}
	if len(req.GetAttributes()) > 0 && p.Attributes == nil {
		p.Attributes = make(map[string]string)
	}
	maps.Copy(p.Attributes, req.GetAttributes())
	maps.DeleteFunc(p.Attributes, func(_, value string) bool { return value == "" })
	return proto.CloneOf(p), nil
}

// UpdateSubscriptions takes the change; cloudtest has no subscriptions.
func (s roomService) UpdateSubscriptions(_ context.Context, req *livekit.UpdateSubscriptionsRequest) (*livekit.UpdateSubscriptionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at(req.GetRoom(), req.GetIdentity()) == nil {
		return nil, errNoParticipant()
	}
	return &livekit.UpdateSubscriptionsResponse{}, nil
}

// ForwardParticipant puts a copy of a participant into another room.
func (s roomService) ForwardParticipant(_ context.Context, req *livekit.ForwardParticipantRequest) (*livekit.ForwardParticipantResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.at(req.GetRoom(), req.GetIdentity())
	if p == nil {
		return nil, errNoParticipant()
	}
	s.enter(req.GetDestinationRoom(), proto.CloneOf(p))
	return &livekit.ForwardParticipantResponse{}, nil
}

// MoveParticipant puts a participant into another room.
func (s roomService) MoveParticipant(_ context.Context, req *livekit.MoveParticipantRequest) (*livekit.MoveParticipantResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.at(req.GetRoom(), req.GetIdentity())
	if p == nil {
		return nil, errNoParticipant()
	}
	s.rooms[req.GetRoom()].take(req.GetIdentity())
	s.enter(req.GetDestinationRoom(), p)
	return &livekit.MoveParticipantResponse{}, nil
}

// PerformRpc answers with the payload that it was given, in place of the participant.
func (s roomService) PerformRpc(_ context.Context, req *livekit.PerformRpcRequest) (*livekit.PerformRpcResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at(req.GetRoom(), req.GetDestinationIdentity()) == nil {
		return nil, errNoParticipant()
	}
	return &livekit.PerformRpcResponse{Payload: req.GetPayload()}, nil
}
