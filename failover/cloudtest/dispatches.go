package cloudtest

import (
	"context"
	"fmt"
	"time"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
)

// dispatch is an agent dispatch, and when a worker takes it.
type dispatch struct {
	info   *livekit.AgentDispatch
	pickup time.Time // zero: no worker was there when it was made, so none ever comes
}

// worker is an agent worker that is registered.
type worker struct {
	name   string
	pickup time.Duration
}

// dispatchService is the AgentDispatchService.
type dispatchService struct{ *state }

// CreateDispatch makes a dispatch, and its room if there is none, in which unnamed workers then start as well. With dedup, the
// id derives from the request id, so a repeat is answered with what the first one made, as it is now.
func (s dispatchService) CreateDispatch(ctx context.Context, req *livekit.CreateAgentDispatchRequest) (*livekit.AgentDispatch, error) {
	if req.GetRoom() == "" {
		return nil, twirp.RequiredArgumentError("room")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := rpcOf(ctx)
	id := newID("AD_")
	if s.dedup && call.id != "" {
		id = derivedID("AD_", call.name()+"\x00"+req.GetRoom(), call.id)
		if known := s.dispatches[id]; known != nil {
			call.unchanged = true
			return known.view(), nil
		}
	}
	r := s.rooms[req.GetRoom()]
	if r == nil {
		r = s.open(&livekit.CreateRoomRequest{Name: req.GetRoom()})
	}
	return s.dispatch(r, &livekit.AgentDispatch{
		Id: id, AgentName: req.GetAgentName(), Metadata: req.GetMetadata(), RestartPolicy: req.GetRestartPolicy(),
		Deployment: req.GetDeployment(), Attributes: req.GetAttributes(), ThreadId: req.GetThreadId(),
	}).view(), nil
}

// dispatch puts a dispatch into a room. mu is held.
func (s *state) dispatch(r *room, info *livekit.AgentDispatch) *dispatch {
	d := &dispatch{info: proto.CloneOf(info)}
	d.info.Room = r.info.GetName()
	d.info.State = &livekit.AgentDispatchState{CreatedAt: nowNano()}
	for _, w := range s.workers {
		if w.name == d.info.GetAgentName() {
			d.pickup = time.Now().Add(w.pickup)
			break
		}
	}
	s.dispatches[d.info.GetId()] = d
	r.dispatches = append(r.dispatches, d)
	return d
}

// DeleteDispatch deletes a dispatch. Deleting it again is "not found".
func (s dispatchService) DeleteDispatch(_ context.Context, req *livekit.DeleteAgentDispatchRequest) (*livekit.AgentDispatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[req.GetRoom()]
	if r == nil {
		return nil, errNoAnswer()
	}
	for i, d := range r.dispatches {
		if d.info.GetId() == req.GetDispatchId() {
			r.dispatches = append(r.dispatches[:i:i], r.dispatches[i+1:]...)
			d.settle()
			d.info.State.DeletedAt = nowNano()
			return d.view(), nil
		}
	}
	return nil, twirp.NotFoundError("agent dispatch does not exist")
}

// ListDispatch lists the dispatches of a room, or the one that is asked for. A room that does not exist has no server to answer:
// like livekit-server, but without its wait of 3 s, that is 503.
func (s dispatchService) ListDispatch(_ context.Context, req *livekit.ListAgentDispatchRequest) (*livekit.ListAgentDispatchResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[req.GetRoom()]
	if r == nil {
		return nil, errNoAnswer()
	}
	list := &livekit.ListAgentDispatchResponse{}
	for _, d := range r.dispatches {
		if want := req.GetDispatchId(); want == "" || want == d.info.GetId() {
			list.AgentDispatches = append(list.AgentDispatches, d.view())
		}
	}
	return list, nil
}

// errNoAnswer is what LiveKit's servers say when no server has the room.
func errNoAnswer() error { return twirp.NewError(twirp.Unavailable, "no response from servers") }

// settle lets the worker come that should have come by now.
func (d *dispatch) settle() {
	if d.pickup.IsZero() || time.Now().Before(d.pickup) {
		return
	}
	at := d.pickup.UnixNano()
	d.pickup = time.Time{}
	d.info.State.Jobs = append(d.info.State.Jobs, d.job(&livekit.JobState{
		Status: livekit.JobStatus_JS_RUNNING, StartedAt: at, UpdatedAt: at, WorkerId: newID("AW_"),
	}))
}

// job makes a job of the dispatch.
func (d *dispatch) job(state *livekit.JobState) *livekit.Job {
	id := newID("AJ_")
	if state.ParticipantIdentity == "" {
		state.ParticipantIdentity = "agent-" + id
	}
	return &livekit.Job{
		Id: id, DispatchId: d.info.GetId(), Type: livekit.JobType_JT_ROOM, Room: &livekit.Room{Name: d.info.GetRoom()},
		AgentName: d.info.GetAgentName(), Metadata: d.info.GetMetadata(), Deployment: d.info.GetDeployment(),
		Attributes: d.info.GetAttributes(), ThreadId: d.info.GetThreadId(), CreatedAt: nowNano(), State: state,
	}
}

// view returns a copy for an answer.
func (d *dispatch) view() *livekit.AgentDispatch {
	d.settle()
	return proto.CloneOf(d.info)
}

// AddWorker registers a worker for an agent name; "" takes what names no agent. Each dispatch of this name that is made from
// now on gets a job that runs, pickup after the dispatch was made. One made while no worker was registered never gets any, as on
// LiveKit's servers. remove unregisters the worker; jobs it took stay.
func (c *Cloud) AddWorker(agentName string, pickup time.Duration) (remove func()) {
	s := c.state
	w := &worker{agentName, pickup}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers = append(s.workers, w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, x := range s.workers {
			if x == w {
				s.workers = append(s.workers[:i:i], s.workers[i+1:]...)
				return
			}
		}
	}
}

// SetJob sets the status of a dispatch's newest job, making one if there is none. text is the agent's error, for a job that
// failed.
func (c *Cloud) SetJob(dispatchID string, status livekit.JobStatus, text string) error {
	return c.setJobs(dispatchID, func(d *dispatch) {
		jobs := d.info.State.Jobs
		if len(jobs) == 0 {
			d.info.State.Jobs = append(jobs, d.job(&livekit.JobState{}))
			jobs = d.info.State.Jobs
		}
		d.pickup = time.Time{}
		now := nowNano()
		state := jobs[len(jobs)-1].State
		state.Status, state.Error, state.UpdatedAt = status, text, now
		switch status {
		case livekit.JobStatus_JS_RUNNING:
			state.StartedAt = now
		case livekit.JobStatus_JS_SUCCESS, livekit.JobStatus_JS_FAILED, livekit.JobStatus_JS_CANCELLED:
			state.EndedAt = now
		}
	})
}

// SetJobs replaces the jobs of a dispatch. Only what their states say is taken; none takes the jobs away.
func (c *Cloud) SetJobs(dispatchID string, states ...*livekit.JobState) error {
	return c.setJobs(dispatchID, func(d *dispatch) {
		d.pickup, d.info.State.Jobs = time.Time{}, nil
		for _, state := range states {
			if state == nil {
				state = &livekit.JobState{}
			}
			d.info.State.Jobs = append(d.info.State.Jobs, d.job(proto.CloneOf(state)))
		}
	})
}

func (c *Cloud) setJobs(dispatchID string, set func(*dispatch)) error {
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dispatches[dispatchID]
	if d == nil {
		return fmt.Errorf("cloudtest: there is no dispatch %q", dispatchID)
	}
	d.settle()
	set(d)
	return nil
}

// Dispatches returns the dispatches of a room that are not deleted, those for unnamed agents included.
func (c *Cloud) Dispatches(room string) []*livekit.AgentDispatch {
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	if r == nil {
		return nil
	}
	list := make([]*livekit.AgentDispatch, len(r.dispatches))
	for i, d := range r.dispatches {
		list[i] = d.view()
	}
	return list
}
