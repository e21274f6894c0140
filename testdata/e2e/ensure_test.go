package e2e

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// An agent is ensured once, whatever is in the room already, and starts nobody else.
func TestEnsureDispatch(t *testing.T) {
	s, c := liveKit(t)
	named, unnamed := startWorker(t, s, "greeter"), startWorker(t, s, "")

	t.Run("new room", func(t *testing.T) {
		d := ensure(t, c, "new", true)
		if d.GetMetadata() != "for new" {
			t.Errorf("the dispatch is %v", d)
		}
		job := receive(t, "job", named.Jobs)
		awaited := await(t, c, "new", d.GetId())
		if awaited.GetId() != job.Id || job.DispatchId != d.GetId() || job.Metadata != "for new" {
			t.Errorf("the awaited job is %v, the worker's %v; want both the dispatch's", awaited, job.Job)
		}
		if again := ensure(t, c, "new", false); again.GetId() != d.GetId() {
			t.Errorf("ensured again is %v, want the same dispatch", again)
		}
		nothing(t, "a job for the unnamed worker", unnamed.Jobs)
		nothing(t, "a second job", named.Jobs)
	})

	t.Run("room that is there", func(t *testing.T) {
		if _, err := c.Room.CreateRoom(t.Context(), &livekit.CreateRoomRequest{Name: "old"}); err != nil {
			t.Fatal(err)
		}
		d := ensure(t, c, "old", true)
		if job := receive(t, "job", named.Jobs); job.DispatchId != d.GetId() || job.Metadata != "for old" {
			t.Errorf("the worker has job %v, want that of %v", job.Job, d)
		}
		await(t, c, "old", d.GetId())
	})

	t.Run("fifty at once", func(t *testing.T) {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			ids   = map[string]bool{}
			first int
		)
		for range 50 {
			wg.Go(func() {
				d, created, err := c.EnsureDispatch(t.Context(), request("many"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[d.GetId()] = true
				if created {
					first++
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || first != 1 {
			t.Errorf("dispatches %v, created by %d callers; want one of each", ids, first)
		}
		job := receive(t, "job", named.Jobs)
		await(t, c, "many", job.DispatchId)
		nothing(t, "a second job", named.Jobs)
	})
}

// A dispatch that no worker was there for never gets a job. Waiting for it ends at the caller's deadline, and sends no second.
func TestNoAgent(t *testing.T) {
	_, c := liveKit(t)
	d := ensure(t, c, "lonely", true)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := c.WaitForAgent(ctx, "lonely", d.GetId())
	var none *lkrpc.NoAgentError
	if !errors.As(err, &none) || none.Dispatch.GetId() != d.GetId() {
		t.Fatalf("the error is %#v, want a *lkrpc.NoAgentError with dispatch %s", err, d.GetId())
	}
	if again := ensure(t, c, "lonely", false); again.GetId() != d.GetId() {
		t.Errorf("ensured again is %v, want the same dispatch", again)
	}
	list, err := c.AgentDispatch.ListDispatch(t.Context(), &livekit.ListAgentDispatchRequest{Room: "lonely"})
	if err != nil || len(list.GetAgentDispatches()) != 1 {
		t.Errorf("the room has %v, %v; want one dispatch", list, err)
	}
}

// The server answers a look at a room that has ended as it answers an outage. The wait ends all the same, long before its time is up.
func TestRoomThatEnded(t *testing.T) {
	_, c := liveKit(t)
	d := ensure(t, c, "short", true)
	if _, err := c.Room.DeleteRoom(t.Context(), &livekit.DeleteRoomRequest{Room: "short"}); err != nil {
		t.Fatal(err)
	}
	_, err := c.WaitForAgent(t.Context(), "short", d.GetId())
	var gone *lkrpc.DispatchGoneError
	if !errors.As(err, &gone) || !errors.Is(err, lkrpc.ErrDispatchGone) {
		t.Errorf("the error is %v, want ErrDispatchGone", err)
	}
	ensure(t, c, "short", true)
}

func request(room string) *livekit.CreateAgentDispatchRequest {
	return &livekit.CreateAgentDispatchRequest{Room: room, AgentName: "greeter", Metadata: "for " + room}
}

func ensure(t testing.TB, c *lkrpc.Client, room string, wantCreated bool) *livekit.AgentDispatch {
	t.Helper()
	d, created, err := c.EnsureDispatch(t.Context(), request(room))
	if err != nil {
		t.Fatal(err)
	}
	if d.GetId() == "" || d.GetRoom() != room || d.GetAgentName() != "greeter" || created != wantCreated {
		t.Errorf("ensured is %v, created %t; want greeter in %s, created %t", d, created, room, wantCreated)
	}
	return d
}

func await(t *testing.T, c *lkrpc.Client, room, dispatch string) *livekit.Job {
	t.Helper()
	job, err := c.WaitForAgent(t.Context(), room, dispatch)
	if err != nil {
		t.Fatal(err)
	}
	if job.GetState().GetStatus() != livekit.JobStatus_JS_RUNNING {
		t.Errorf("the awaited job is %v, want it running", job)
	}
	return job
}
