package e2e

import (
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// The main job: a dispatch puts an agent to work, with what it says byte for byte.
func TestDispatch(t *testing.T) {
	s, c := liveKit(t)
	w := startWorker(t, s, "greeter")
	for name, metadata := range map[string]string{
		"empty":   "",
		"json":    `{"user": "u1", "n": 1}`,
		"unicode": "ünïcödé 👩‍👩‍👧 \u202e עברית \u2028 \x00\x01\x7f \ufffd\uffff\U0010ffff",
		"60 KiB":  strings.Repeat("0123456789abcdé\n", 60<<10/17),
	} {
		t.Run(name, func(t *testing.T) {
			room := "room " + name
			d, err := c.AgentDispatch.CreateDispatch(t.Context(), &livekit.CreateAgentDispatchRequest{
				Room: room, AgentName: "greeter", Metadata: metadata,
			})
			if err != nil {
				t.Fatal(err)
			}
			if d.GetId() == "" || d.GetRoom() != room || d.GetAgentName() != "greeter" || d.GetMetadata() != metadata {
				t.Errorf("the dispatch is %v", d)
			}

			job := receive(t, "job", w.Jobs)
			if job.DispatchId != d.GetId() || job.Room.GetName() != room || job.AgentName != "greeter" {
				t.Errorf("the worker has job %v, want that of dispatch %s", job.Job, d.GetId())
			}
			if job.Metadata != metadata {
				t.Errorf("metadata: %d bytes %.100q arrived, want %d bytes %.100q", len(job.Metadata), job.Metadata, len(metadata), metadata)
			}

			if listed := running(t, c, room, d.GetId()); listed.GetId() != job.Id || listed.GetState().GetWorkerId() != w.ID {
				t.Errorf("listed is job %v, want %s of worker %s", listed, job.Id, w.ID)
			}

			deleted, err := c.AgentDispatch.DeleteDispatch(t.Context(), &livekit.DeleteAgentDispatchRequest{Room: room, DispatchId: d.GetId()})
			switch {
			case err != nil && strings.Contains(err.Error(), "marshaling livekit.AgentDispatch: size mismatch"):
				t.Log(err) // livekit-server v1.13 at times changes the jobs while it writes this answer; what it did is looked at below
			case err != nil:
				t.Fatal(err)
			case deleted.GetId() != d.GetId():
				t.Errorf("deleted is %v, want %s", deleted, d.GetId())
			}
			if ended := receive(t, "termination", w.Terminated); ended != job.Id {
				t.Errorf("the server ended job %s, want %s", ended, job.Id)
			}
			list, err := c.AgentDispatch.ListDispatch(t.Context(), &livekit.ListAgentDispatchRequest{Room: room, DispatchId: d.GetId()})
			if err != nil || len(list.GetAgentDispatches()) != 0 {
				t.Errorf("after the deletion there is %v, %v", list, err)
			}
			_, err = c.AgentDispatch.DeleteDispatch(t.Context(), &livekit.DeleteAgentDispatchRequest{Room: room, DispatchId: d.GetId()})
			wantCode(t, err, twirp.NotFound)
			nothing(t, "another job", w.Jobs)
		})
	}
}

// A token can bring the agent: the room that its holder opens starts it.
func TestDispatchByToken(t *testing.T) {
	s, c := liveKit(t)
	named, other := startWorker(t, s, "host"), startWorker(t, s, "other")
	const metadata = `{"greeting": "¡hola!"}`
	token, err := auth.NewAccessToken(s.Key, s.Secret).
		SetIdentity("caller").
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "by token"}).
		SetAgents(&livekit.RoomAgentDispatch{AgentName: "host", Metadata: metadata}).
		ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	joined := join(t, s.URL, token)
	if joined.GetRoom().GetName() != "by token" || joined.GetParticipant().GetIdentity() != "caller" {
		t.Errorf("joined %v as %v", joined.GetRoom(), joined.GetParticipant())
	}
	job := receive(t, "job", named.Jobs)
	if job.Room.GetName() != "by token" || job.AgentName != "host" || job.Metadata != metadata || job.DispatchId == "" {
		t.Errorf("the worker has job %v", job.Job)
	}
	if listed := running(t, c, "by token", job.DispatchId); listed.GetId() != job.Id {
		t.Errorf("listed is job %v, want %s", listed, job.Id)
	}
	nothing(t, "a job for the worker of another name", other.Jobs)
}
