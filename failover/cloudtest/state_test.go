package cloudtest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// withID gives the calls of a context a request id.
func withID(t *testing.T, id string) context.Context {
	t.Helper()
	ctx, err := twirp.WithHTTPRequestHeaders(background, http.Header{failover.RequestIDHeader: {id}})
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func hasCode(err error, code twirp.ErrorCode) bool {
	var e twirp.Error
	return errors.As(err, &e) && e.Code() == code
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// The same request id means the same dispatch, in whatever region it arrives; without dedup every request is a new one.
func TestDispatchIDs(t *testing.T) {
	for want, opts := range map[int][]cloudtest.Option{1: nil, 2: {cloudtest.WithoutDedup()}} {
		u := newUser(t, start(t, opts...))
		req := &livekit.CreateAgentDispatchRequest{Room: "room", AgentName: "a", Metadata: "m", Deployment: "d", Attributes: map[string]string{"k": "v"}}
		one := must[*livekit.AgentDispatch](t)(u.agents(u.Region(0)).CreateDispatch(withID(t, "1"), req))
		two := must[*livekit.AgentDispatch](t)(u.agents(u.API()).CreateDispatch(withID(t, "1"), req))
		if (one.GetId() == two.GetId()) != (want == 1) {
			t.Errorf("ids %s and %s", one.GetId(), two.GetId())
		}
		if one.GetRoom() != "room" || one.GetAgentName() != "a" || one.GetMetadata() != "m" || one.GetDeployment() != "d" ||
			one.GetAttributes()["k"] != "v" || one.GetState().GetCreatedAt() == 0 {
			t.Errorf("created %v", one)
		}
		if n := u.effects("AgentDispatchService/CreateDispatch"); n != want {
			t.Errorf("%d effects, want %d", n, want)
		}
		other := must[*livekit.AgentDispatch](t)(u.agents(u.Region(0)).CreateDispatch(withID(t, "2"), req))
		if other.GetId() == one.GetId() {
			t.Error("another request id gave the same dispatch")
		}
		// The room was made by the first dispatch, with one for unnamed agents in it.
		list := must[*livekit.ListAgentDispatchResponse](t)(u.agents(u.Region(2)).ListDispatch(background, &livekit.ListAgentDispatchRequest{Room: "room"}))
		named, unnamed := 0, 0
		for _, d := range list.GetAgentDispatches() {
			if d.GetAgentName() == "a" {
				named++
			} else {
				unnamed++
			}
		}
		if named != want+1 || unnamed != 1 || len(u.Dispatches("room")) != want+2 {
			t.Errorf("listed %v", list)
		}
	}
}

func TestDispatches(t *testing.T) {
	u := newUser(t, start(t))
	agents, rooms := u.agents(u.Region(0)), u.rooms(u.Region(1))
	if _, err := agents.ListDispatch(background, &livekit.ListAgentDispatchRequest{Room: "room"}); !hasCode(err, twirp.Unavailable) {
		t.Errorf("the dispatches of a room that does not exist: %v", err)
	}
	if _, err := agents.CreateDispatch(background, &livekit.CreateAgentDispatchRequest{AgentName: "a"}); !hasCode(err, twirp.Unauthenticated) {
		t.Errorf("a dispatch without a room: %v", err)
	}
	room := &livekit.CreateRoomRequest{Name: "room", Agents: []*livekit.RoomAgentDispatch{{AgentName: "a", Metadata: "m"}, {AgentName: "b"}}}
	must[*livekit.Room](t)(rooms.CreateRoom(background, room))
	must[*livekit.Room](t)(rooms.CreateRoom(background, room)) // changes nothing
	list := u.Dispatches("room")
	if len(list) != 2 || list[0].GetAgentName() != "a" || list[0].GetMetadata() != "m" || list[1].GetAgentName() != "b" || u.effects("RoomService/CreateRoom") != 1 {
		t.Fatalf("the room's dispatches: %v, effects %v", list, u.Effects())
	}
	id := list[0].GetId()
	one := must[*livekit.ListAgentDispatchResponse](t)(agents.ListDispatch(background, &livekit.ListAgentDispatchRequest{Room: "room", DispatchId: id}))
	if len(one.GetAgentDispatches()) != 1 || one.GetAgentDispatches()[0].GetId() != id {
		t.Errorf("listed %v", one)
	}
	gone := must[*livekit.AgentDispatch](t)(agents.DeleteDispatch(background, &livekit.DeleteAgentDispatchRequest{Room: "room", DispatchId: id}))
	if gone.GetState().GetDeletedAt() == 0 || len(u.Dispatches("room")) != 1 {
		t.Errorf("deleted: %v", gone)
	}
	if _, err := agents.DeleteDispatch(background, &livekit.DeleteAgentDispatchRequest{Room: "room", DispatchId: id}); !hasCode(err, twirp.NotFound) {
		t.Errorf("deleted again: %v", err)
	}
	must[*livekit.DeleteRoomResponse](t)(rooms.DeleteRoom(background, &livekit.DeleteRoomRequest{Room: "room"}))
	if _, err := rooms.DeleteRoom(background, &livekit.DeleteRoomRequest{Room: "room"}); !hasCode(err, twirp.NotFound) {
		t.Errorf("the room deleted again: %v", err)
	}
	if u.Dispatches("room") != nil {
		t.Error("dispatches outlive their room")
	}
}

func TestJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		agents := u.agents(u.Region(0))
		create := func() *livekit.AgentDispatch {
			return must[*livekit.AgentDispatch](t)(agents.CreateDispatch(background, &livekit.CreateAgentDispatchRequest{Room: "room", AgentName: "a", Metadata: "m"}))
		}
		jobs := func(id string) []*livekit.Job {
			list := must[*livekit.ListAgentDispatchResponse](t)(agents.ListDispatch(background, &livekit.ListAgentDispatchRequest{Room: "room", DispatchId: id}))
			return list.GetAgentDispatches()[0].GetState().GetJobs()
		}
		early := create()
		remove := u.AddWorker("a", 3*time.Second)
		d := create()
		if n := len(jobs(d.GetId())); n != 0 {
			t.Errorf("%d jobs at once", n)
		}
		<-time.After(3 * time.Second)
		got := jobs(d.GetId())
		if len(got) != 1 || got[0].GetState().GetStatus() != livekit.JobStatus_JS_RUNNING || got[0].GetDispatchId() != d.GetId() ||
			got[0].GetMetadata() != "m" || got[0].GetAgentName() != "a" {
			t.Fatalf("jobs: %v", got)
		}
		if again := jobs(d.GetId()); again[0].GetId() != got[0].GetId() {
			t.Error("the job's id changes")
		}
		if n := len(jobs(early.GetId())); n != 0 {
			t.Errorf("a dispatch from before the worker got %d jobs", n)
		}
		remove()
		late := create()
		<-time.After(time.Minute)
		if n := len(jobs(late.GetId())); n != 0 {
			t.Errorf("a worker that left took %d jobs", n)
		}

		if err := u.SetJob(d.GetId(), livekit.JobStatus_JS_FAILED, "out of memory"); err != nil {
			t.Fatal(err)
		}
		if got := jobs(d.GetId()); len(got) != 1 || got[0].GetState().GetError() != "out of memory" ||
			got[0].GetState().GetStatus() != livekit.JobStatus_JS_FAILED || got[0].GetState().GetEndedAt() == 0 {
			t.Errorf("jobs: %v", got)
		}
		if err := u.SetJob(late.GetId(), livekit.JobStatus_JS_SUCCESS, ""); err != nil || len(jobs(late.GetId())) != 1 {
			t.Errorf("a job where there was none: %v", err)
		}
		if err := u.SetJobs(late.GetId(), &livekit.JobState{Status: livekit.JobStatus_JS_PENDING}, nil); err != nil || len(jobs(late.GetId())) != 2 {
			t.Errorf("two jobs: %v", err)
		}
		if err := u.SetJob("AD_none", livekit.JobStatus_JS_RUNNING, ""); err == nil {
			t.Error("a job for a dispatch that does not exist")
		}
	})
}

// A worker without a name takes what names no agent: rooms that make themselves, not those that name their agents.
func TestUnnamedWorker(t *testing.T) {
	u := newUser(t, start(t))
	u.AddWorker("", 0)
	jobs := func(room string) (n int) {
		for _, d := range u.Dispatches(room) {
			n += len(d.GetState().GetJobs())
		}
		return n
	}
	must[*livekit.Room](t)(u.rooms(u.Region(0)).CreateRoom(background, &livekit.CreateRoomRequest{Name: "named", Agents: []*livekit.RoomAgentDispatch{{AgentName: "a"}}}))
	must[*livekit.AgentDispatch](t)(u.agents(u.Region(0)).CreateDispatch(background, &livekit.CreateAgentDispatchRequest{Room: "room", AgentName: "a"}))
	if jobs("named") != 0 || jobs("room") != 1 {
		t.Errorf("%d and %d jobs, want 0 and 1", jobs("named"), jobs("room"))
	}
}

func TestRooms(t *testing.T) {
	u := newUser(t, start(t))
	rooms := u.rooms(u.Region(0))
	for _, name := range []string{"c", "a", "b"} {
		must[*livekit.Room](t)(rooms.CreateRoom(background, &livekit.CreateRoomRequest{Name: name, Metadata: "of " + name, MaxParticipants: 7}))
	}
	all := must[*livekit.ListRoomsResponse](t)(u.rooms(u.Region(1)).ListRooms(background, &livekit.ListRoomsRequest{})).GetRooms()
	if len(all) != 3 || all[0].GetName() != "a" || all[0].GetMetadata() != "of a" || all[0].GetMaxParticipants() != 7 ||
		all[0].GetSid() == "" || all[0].GetCreationTime() == 0 {
		t.Errorf("rooms: %v", all)
	}
	some := must[*livekit.ListRoomsResponse](t)(rooms.ListRooms(background, &livekit.ListRoomsRequest{Names: []string{"b", "nowhere"}})).GetRooms()
	if len(some) != 1 || some[0].GetName() != "b" {
		t.Errorf("rooms by name: %v", some)
	}
	if _, err := rooms.UpdateRoomMetadata(background, &livekit.UpdateRoomMetadataRequest{Room: "room", Metadata: "x"}); !hasCode(err, twirp.NotFound) {
		t.Errorf("metadata of a room that does not exist: %v", err)
	}
	u.works(u.Region(0))
	if r := must[*livekit.Room](t)(rooms.UpdateRoomMetadata(background, &livekit.UpdateRoomMetadataRequest{Room: "room", Metadata: "x"})); r.GetMetadata() != "x" {
		t.Errorf("updated: %v", r)
	}
	send := &livekit.SendDataRequest{Room: "room", Data: []byte("hi"), Nonce: []byte("n")}
	for range 2 {
		must[*livekit.SendDataResponse](t)(rooms.SendData(background, send))
	}
	if n := u.effects("RoomService/SendData"); n != 1 {
		t.Errorf("one nonce took effect %d times", n)
	}
}

func TestParticipants(t *testing.T) {
	u := newUser(t, start(t))
	rooms := u.rooms(u.Region(0))
	who := &livekit.RoomParticipantIdentity{Room: "room", Identity: "x"}
	if _, err := rooms.GetParticipant(background, who); !hasCode(err, twirp.NotFound) {
		t.Errorf("nobody: %v", err)
	}
	for _, bad := range []error{u.AddParticipant("", &livekit.ParticipantInfo{Identity: "x"}), u.AddParticipant("room", nil)} {
		if bad == nil {
			t.Error("a participant without room or identity")
		}
	}
	join := func() {
		if err := u.AddParticipant("room", &livekit.ParticipantInfo{Identity: "x", IsPublisher: true, Tracks: []*livekit.TrackInfo{{Sid: "TR_1"}}}); err != nil {
			t.Fatal(err)
		}
	}
	join()
	join() // the same identity again
	p := must[*livekit.ParticipantInfo](t)(rooms.GetParticipant(background, who))
	if p.GetSid() == "" || p.GetState() != livekit.ParticipantInfo_ACTIVE || p.GetJoinedAt() == 0 {
		t.Errorf("joined: %v", p)
	}
	list := must[*livekit.ListRoomsResponse](t)(rooms.ListRooms(background, &livekit.ListRoomsRequest{}))
	if r := list.GetRooms()[0]; r.GetNumParticipants() != 1 || r.GetNumPublishers() != 1 {
		t.Errorf("the room: %v", r)
	}
	p = must[*livekit.ParticipantInfo](t)(rooms.UpdateParticipant(background, &livekit.UpdateParticipantRequest{
		Room: "room", Identity: "x", Name: "X", Metadata: "m", Attributes: map[string]string{"a": "1", "b": ""}, Permission: &livekit.ParticipantPermission{CanPublish: true}}))
	if p.GetName() != "X" || p.GetMetadata() != "m" || len(p.GetAttributes()) != 1 || !p.GetPermission().GetCanPublish() {
		t.Errorf("updated: %v", p)
	}
	muted := must[*livekit.MuteRoomTrackResponse](t)(rooms.MutePublishedTrack(background, &livekit.MuteRoomTrackRequest{
		Room: "room", Identity: "x", TrackSid: "TR_1", Muted: true}))
	if !muted.GetTrack().GetMuted() {
		t.Errorf("muted: %v", muted)
	}
	if _, err := rooms.MutePublishedTrack(background, &livekit.MuteRoomTrackRequest{Room: "room", Identity: "x", TrackSid: "TR_2"}); !hasCode(err, twirp.NotFound) {
		t.Errorf("a track that does not exist: %v", err)
	}
	rpc := &livekit.PerformRpcRequest{Room: "room", DestinationIdentity: "x", Payload: "hello"}
	if reply := must[*livekit.PerformRpcResponse](t)(rooms.PerformRpc(background, rpc)); reply.GetPayload() != "hello" {
		t.Errorf("RPC: %v", reply)
	}
	must[*livekit.UpdateSubscriptionsResponse](t)(rooms.UpdateSubscriptions(background, &livekit.UpdateSubscriptionsRequest{Room: "room", Identity: "x"}))
	must[*livekit.ForwardParticipantResponse](t)(rooms.ForwardParticipant(background, &livekit.ForwardParticipantRequest{Room: "room", Identity: "x", DestinationRoom: "other"}))
	must[*livekit.MoveParticipantResponse](t)(rooms.MoveParticipant(background, &livekit.MoveParticipantRequest{Room: "room", Identity: "x", DestinationRoom: "other"}))
	left := must[*livekit.ListParticipantsResponse](t)(rooms.ListParticipants(background, &livekit.ListParticipantsRequest{Room: "room"}))
	if len(left.GetParticipants()) != 0 {
		t.Errorf("still there: %v", left)
	}
	if _, err := rooms.RemoveParticipant(background, who); !hasCode(err, twirp.NotFound) {
		t.Errorf("removing somebody who has moved: %v", err)
	}
	join()
	must[*livekit.RemoveParticipantResponse](t)(rooms.RemoveParticipant(background, who))
}
