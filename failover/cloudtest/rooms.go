package cloudtest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
)

// room is a room that exists.
type room struct {
	info         *livekit.Room
	participants []*livekit.ParticipantInfo
	dispatches   []*dispatch
	nonces       map[string]bool // of the data that was sent
}

// roomService is the RoomService.
type roomService struct{ *state }

func errNoRoom() error { return twirp.NotFoundError("requested room does not exist") }

// open makes a room. Agents that the request names are dispatched to it; without any, whatever unnamed worker there is. mu is
// held.
func (s *state) open(req *livekit.CreateRoomRequest) *room {
	now := time.Now()
	r := &room{info: &livekit.Room{
		Sid: newID("RM_"), Name: req.GetName(), EmptyTimeout: req.GetEmptyTimeout(), DepartureTimeout: req.GetDepartureTimeout(),
		MaxParticipants: req.GetMaxParticipants(), Metadata: req.GetMetadata(),
		CreationTime: now.Unix(), CreationTimeMs: now.UnixMilli(),
	}}
	s.rooms[req.GetName()] = r
	agents := req.GetAgents()
	if len(agents) == 0 {
		agents = []*livekit.RoomAgentDispatch{{}}
	}
	for _, a := range agents {
		s.dispatch(r, &livekit.AgentDispatch{
			Id: newID("AD_"), AgentName: a.GetAgentName(), Metadata: a.GetMetadata(), RestartPolicy: a.GetRestartPolicy(),
			Deployment: a.GetDeployment(), Attributes: a.GetAttributes(), ThreadId: a.GetThreadId(),
		})
	}
	return r
}

// view returns a copy for an answer.
func (r *room) view() *livekit.Room {
	info := proto.CloneOf(r.info)
	info.NumParticipants = uint32(len(r.participants))
	for _, p := range r.participants {
		if p.GetIsPublisher() {
			info.NumPublishers++
		}
	}
	return info
}

// CreateRoom makes a room. One that exists is returned as it is, and gets no agents.
func (s roomService) CreateRoom(ctx context.Context, req *livekit.CreateRoomRequest) (*livekit.Room, error) {
	if req.GetName() == "" {
		return nil, twirp.RequiredArgumentError("name")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[req.GetName()]
	if r != nil {
		rpcOf(ctx).unchanged = true
		return r.view(), nil
	}
	return s.open(req).view(), nil
}

// ListRooms lists all rooms, or those of the names that are asked for, by name.
func (s roomService) ListRooms(_ context.Context, req *livekit.ListRoomsRequest) (*livekit.ListRoomsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &livekit.ListRoomsResponse{}
	for name, r := range s.rooms {
		if names := req.GetNames(); len(names) == 0 || slices.Contains(names, name) {
			list.Rooms = append(list.Rooms, r.view())
		}
	}
	slices.SortFunc(list.Rooms, func(a, b *livekit.Room) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list, nil
}

// DeleteRoom ends a room, its participants and its dispatches.
func (s roomService) DeleteRoom(_ context.Context, req *livekit.DeleteRoomRequest) (*livekit.DeleteRoomResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[req.GetRoom()]
	if r == nil {
		return nil, errNoRoom()
	}
	for _, d := range r.dispatches {
		d.settle()
		d.info.State.DeletedAt = nowNano()
	}
	delete(s.rooms, req.GetRoom())
	return &livekit.DeleteRoomResponse{}, nil
}

// UpdateRoomMetadata replaces a room's metadata.
func (s roomService) UpdateRoomMetadata(_ context.Context, req *livekit.UpdateRoomMetadataRequest) (*livekit.Room, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[req.GetRoom()]
	if r == nil {
		return nil, errNoRoom()
	}
	r.info.Metadata = req.GetMetadata()
	return r.view(), nil
}

// SendData takes data for a room. Nobody receives it; what carries a nonce that came before changes nothing.
func (s roomService) SendData(ctx context.Context, req *livekit.SendDataRequest) (*livekit.SendDataResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[req.GetRoom()]
	if r == nil {
		return nil, errNoRoom()
	}
	if nonce := string(req.GetNonce()); nonce != "" {
		rpcOf(ctx).unchanged = r.nonces[nonce]
		if r.nonces == nil {
			r.nonces = make(map[string]bool)
		}
		r.nonces[nonce] = true
	}
	return &livekit.SendDataResponse{}, nil
}
