package e2e

import (
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// A room from its creation to its end.
func TestRoom(t *testing.T) {
	s, c := liveKit(t)
	ctx := t.Context()

	created, err := c.Room.CreateRoom(ctx, &livekit.CreateRoomRequest{
		Name: "studio", Metadata: "first", EmptyTimeout: 600, MaxParticipants: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	if created.GetSid() == "" || created.GetName() != "studio" || created.GetMetadata() != "first" ||
		created.GetEmptyTimeout() != 600 || created.GetMaxParticipants() != 7 {
		t.Errorf("created is %v", created)
	}
	again, err := c.Room.CreateRoom(ctx, &livekit.CreateRoomRequest{Name: "studio"})
	if err != nil || again.GetSid() != created.GetSid() {
		t.Errorf("created again is %v, %v; want the same room", again, err)
	}
	if _, err := c.Room.CreateRoom(ctx, &livekit.CreateRoomRequest{Name: "annex"}); err != nil {
		t.Fatal(err)
	}

	if all := rooms(t, c.Room); len(all) != 2 {
		t.Errorf("all rooms: %v, want 2", all)
	}
	if one := rooms(t, c.Room, "studio"); len(one) != 1 || one[0].GetSid() != created.GetSid() {
		t.Errorf("rooms of that name: %v", one)
	}
	if none := rooms(t, c.Room, "no such room"); len(none) != 0 {
		t.Errorf("rooms of a name that is not there: %v", none)
	}

	updated, err := c.Room.UpdateRoomMetadata(ctx, &livekit.UpdateRoomMetadataRequest{Room: "studio", Metadata: "second ✓"})
	if err != nil || updated.GetMetadata() != "second ✓" {
		t.Errorf("updated is %v, %v", updated, err)
	}

	if got := participants(t, c.Room, "studio"); len(got) != 0 {
		t.Errorf("participants of an empty room: %v", got)
	}
	token, err := auth.NewAccessToken(s.Key, s.Secret).
		SetIdentity("ann").SetName("Ann").SetMetadata("m").SetAttributes(map[string]string{"k": "v"}).
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio"}).
		ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	if joined := join(t, s.URL, token); joined.GetRoom().GetMetadata() != "second ✓" {
		t.Errorf("the joined room is %v, want the new metadata", joined.GetRoom())
	}
	got := participants(t, c.Room, "studio")
	if len(got) != 1 || got[0].GetIdentity() != "ann" || got[0].GetName() != "Ann" || got[0].GetMetadata() != "m" ||
		got[0].GetAttributes()["k"] != "v" {
		t.Errorf("participants: %v, want ann as her token says", got)
	}

	if _, err := c.Room.DeleteRoom(ctx, &livekit.DeleteRoomRequest{Room: "studio"}); err != nil {
		t.Fatal(err)
	}
	if left := rooms(t, c.Room); len(left) != 1 || left[0].GetName() != "annex" {
		t.Errorf("after the deletion there are %v, want the other room", left)
	}
}

func rooms(t *testing.T, c livekit.RoomService, names ...string) []*livekit.Room {
	t.Helper()
	list, err := c.ListRooms(t.Context(), &livekit.ListRoomsRequest{Names: names})
	if err != nil {
		t.Fatal(err)
	}
	return list.GetRooms()
}

func participants(t *testing.T, c livekit.RoomService, room string) []*livekit.ParticipantInfo {
	t.Helper()
	list, err := c.ListParticipants(t.Context(), &livekit.ListParticipantsRequest{Room: room})
	if err != nil {
		t.Fatal(err)
	}
	return list.GetParticipants()
}
