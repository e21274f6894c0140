package lkrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
)

const (
	ensureRounds = 4                      // looks, each followed by what it calls for
	ensurePause  = 500 * time.Millisecond // before another look
	createTime   = 5 * time.Second        // of one creation, before it is looked up
	settleLooks  = 5                      // looks for what a creation may have made, at least
	settlePause  = 100 * time.Millisecond // between the first two; then twice as long each time
	outlives     = 500 * time.Millisecond // longer than a server works on a call beyond its time: X-Twirp-Timeout-Ms has 250 ms more
)

// ErrCannotTell is why EnsureDispatch gave up: whether the agent is dispatched could not be found out. errors.As finds the
// look-up's *Error in it. Nothing was created, unless its OutcomeUnknown is set: then a creation came before the look-up. Calling
// again is right; taking it for "no agent" is not.
var ErrCannotTell = errors.New("lkrpc: cannot tell whether the agent is dispatched")

// EnsureDispatch sees to it that an agent of this name is dispatched to this room, once, on any LiveKit server, and returns the
// dispatch: a new one (created), or the one that was there. Room and AgentName are required; the other fields count only if a
// dispatch is created. It is safe for concurrent use.
//
// A dispatch counts as there unless it was deleted or all its jobs have ended; one of another deployment is another one. What
// this call has made itself, and finds when it looks again, counts also if its agent is done by then. A room that does not exist
// is made with the agent in it, which starts that agent alone: a plain CreateDispatch into a new room also starts the workers
// that have no name. In a room that exists the dispatch is created unless it is found. A creation whose outcome is unknown is
// looked up, and sent again with the same request id only if it did not happen: on LiveKit Cloud, which knows the id again, after
// looks of 1.5 s; elsewhere, or if it was to make the room, after the creation's 5 s, for which a server may still be at work on it.
//
// # What success means
//
// The server has accepted the dispatch, no more. A job may never come: none ever does to a dispatch that was made while no worker
// of that name was registered, not even when one registers later. [Client.WaitForAgent] tells. After its [ErrNoAgent] delete the
// dispatch, then ensure again: the dead one still counts as there, and would only be returned. With [WithRequestID] take a new key
// for that, since LiveKit Cloud derives the dispatch's id from it.
//
// # At the same time
//
// Callers of one Client that want the same agent in the same room share one flight, which is the first caller's: its other fields,
// request id, headers and WithoutFailover count. Exactly one of them gets created=true, not always the first, and each gets a copy
// of its own. A caller whose context ends stops waiting, and the flight goes on for the others, or, once a creation is on its way,
// to its end, so that the next caller does not make another one beside it. If the client's credentials or interceptors panic, each
// caller that waits does.
//
// Two processes, or two Clients, are not kept apart. If the room is new it is made once, with one agent, and both may be told
// that they created it. If it exists, both may look before either creates: then there are two dispatches and two agents in the
// room, and later calls return one of the two. Where that can happen, give the room its agent when it is made (CreateRoom, or
// auth.AccessToken.SetAgents), or let one process decide, or, on LiveKit Cloud, use the same [WithRequestID] in both.
//
// # Errors
//
// They are *Error, or wrap one and [ErrCannotTell]. A look-up that is refused (unauthenticated, permission_denied) comes back as
// it is: calling again would not help, and it does not mean that there is no agent either. OutcomeUnknown says whether a dispatch
// may have been created. The code failed_precondition says that the caller's request id belongs to a dispatch that is over, or
// of another agent: take a new id.
//
// The credentials must allow ListRooms and CreateRoom too, beside what dispatches take: those with an API key do.
//
// The time is the context's. Without a deadline each call beneath has its own, and four rounds are the most: where nobody answers,
// EnsureDispatch gives up after two minutes on LiveKit Cloud, and after 40 s on a server that gets one attempt a call.
func (c *Client) EnsureDispatch(ctx context.Context, req *livekit.CreateAgentDispatchRequest) (
	d *livekit.AgentDispatch, created bool, err error) {
	switch {
	case req == nil:
		return nil, false, ensureError("the request is nil")
	case req.GetAgentName() == "":
		return nil, false, ensureError("the request names no agent: set AgentName")
	case req.GetRoom() == "":
		return nil, false, ensureError("the request names no room: set Room")
	}
	if err := ctx.Err(); err != nil {
		return nil, false, contextError(err, &outgoing{}).named(ensureName)
	}
	if id, ok := requestID(ctx); ok { // what creates a room does not look at it
		if err := c.ensured.use(id, ensureName, req); err != nil {
			return nil, false, ensureError(err.Error())
		}
	}
	req = proto.CloneOf(req) // the flight may outlast this call, after which req is the caller's again
	f := c.flights.join(ctx, flightKey{req.GetRoom(), req.GetAgentName(), req.GetDeployment()}, func(ctx context.Context, f *flight) {
		e := ensuring{c: c, req: req, flight: f}
		f.dispatch, f.created, f.err = e.run(ctx)
	})
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	landed := f.landed()
	if creating := c.flights.leave(f); !landed {
		e := contextError(ctx.Err(), &outgoing{}).named(ensureName)
		e.OutcomeUnknown = creating
		return nil, false, e
	}
	switch {
	case f.panicked != nil:
		panic(f.panicked)
	case f.err != nil:
		return nil, false, f.err
	}
	return proto.CloneOf(f.dispatch), f.created && f.claimed.CompareAndSwap(false, true), nil
}

var ensureName = methodName{"AgentDispatchService", "EnsureDispatch"}

func ensureError(msg string) error {
	return localError(twirp.InvalidArgument, msg, nil).named(ensureName)
}

// ensuring is one EnsureDispatch on its way.
type ensuring struct {
	c       *Client
	req     *livekit.CreateAgentDispatchRequest
	flight  *flight
	given   bool            // the request id is the caller's
	fresh   bool            // the room was made by this flight, or another caller made it at the same time
	unknown error           // the newest creation whose outcome is unknown
	settled time.Time       // when a server that would not know it again works on it no more
	late    time.Time       // when no server works on a CreateDispatch any more: until then it may land in a room that is made anew
	over    map[string]bool // dispatches that were over before anything was created
}

// run looks, does what the look calls for, and looks again where that told nothing.
func (e *ensuring) run(ctx context.Context) (*livekit.AgentDispatch, bool, error) {
	if _, e.given = requestID(ctx); !e.given {
		ctx = WithRequestID(ctx, uuid.NewString()) // every creation of this flight is the same one
	}
	var failure error
	for round := range ensureRounds {
		if round > 0 {
			if err := pause(ctx, ensurePause); err != nil {
				break
			}
		}
		d, created, err := e.round(ctx)
		if err == nil {
			return d, created, nil
		}
		failure = err
		if !worthAnotherLook(err) {
			break
		}
	}
	if e.unknown != nil { // the next call's looks must not come before what may still come of this one
		pause(ctx, max(time.Until(e.settled), time.Until(e.late)))
	}
	return nil, false, e.judged(failure)
}

// judged is an error as the caller gets it: its OutcomeUnknown is about the creations of the whole flight, rather than about the
// call that came last, which may only have looked.
func (e *ensuring) judged(err error) error {
	var failed *Error
	unknown := e.flight.creating.Load()
	if !errors.As(err, &failed) || failed.OutcomeUnknown == unknown && !(unknown && failed.reads) {
		return err
	}
	c := *failed // interceptors have seen the original
	c.OutcomeUnknown, c.reads = unknown, false
	if errors.Is(err, ErrCannotTell) {
		return cannotTell(&c)
	}
	return &c
}

// round is one look and what follows from it.
func (e *ensuring) round(ctx context.Context) (d *livekit.AgentDispatch, created bool, err error) {
	exists, err := e.c.roomExists(ctx, e.req.GetRoom())
	if err != nil {
		return nil, false, cannotTell(err)
	}
	if !exists && time.Now().Before(e.late) { // somebody deleted the room meanwhile
		if err := pause(ctx, time.Until(e.late)); err != nil {
			return nil, false, contextError(err, &outgoing{}).named(ensureName)
		}
		if exists, err = e.c.roomExists(ctx, e.req.GetRoom()); err != nil {
			return nil, false, cannotTell(err)
		}
	}
	if !exists {
		if err := e.createRoom(ctx); err != nil {
			return nil, false, err
		}
		e.fresh = true
	}
	made := e.fresh || e.unknown != nil // in this round or before; it may not show at once
	for look := 1; ; look++ {
		d, err = e.find(ctx)
		switch {
		case err != nil:
			return nil, false, cannotTell(err)
		case d != nil:
			return d, made, nil
		case !made, look >= settleLooks && !time.Now().Before(e.settled):
			d, err = e.create(ctx)
			return d, err == nil, err
		}
		if err := pause(ctx, settlePause<<min(look-1, settleLooks-2)); err != nil {
			return nil, false, contextError(err, &outgoing{}).named(ensureName)
		}
	}
}

func (c *Client) roomExists(ctx context.Context, name string) (bool, error) {
	list, err := c.Room.ListRooms(ctx, &livekit.ListRoomsRequest{Names: []string{name}})
	if err != nil {
		return false, err
	}
	for _, room := range list.GetRooms() {
		if room.GetName() == name {
			return true, nil
		}
	}
	return false, nil
}

// createRoom makes the room with the agent in it. If another caller was faster, that changes nothing in the other's room, and
// the look that follows tells.
func (e *ensuring) createRoom(ctx context.Context) error {
	_, err := e.creating(ctx, true, func(ctx context.Context) (*livekit.AgentDispatch, error) {
		req := proto.CloneOf(e.req) // interceptors may change what they are given
		_, err := e.c.Room.CreateRoom(ctx, &livekit.CreateRoomRequest{
			Name: req.GetRoom(),
			Agents: []*livekit.RoomAgentDispatch{{
				AgentName:     req.GetAgentName(),
				Metadata:      req.GetMetadata(),
				RestartPolicy: req.GetRestartPolicy(),
				Deployment:    req.GetDeployment(),
				Attributes:    req.GetAttributes(),
				ThreadId:      req.GetThreadId(),
			}},
		})
		return nil, err
	})
	return err
}

// find returns the dispatch that makes another one superfluous, or nil. One that is over already does so too if it came of this
// flight: an agent with little to do would do it twice.
func (e *ensuring) find(ctx context.Context) (*livekit.AgentDispatch, error) {
	list, err := e.c.AgentDispatch.ListDispatch(ctx, &livekit.ListAgentDispatchRequest{Room: e.req.GetRoom()})
	if err != nil {
		return nil, err
	}
	var done *livekit.AgentDispatch
	for _, d := range list.GetAgentDispatches() {
		switch {
		case d.GetAgentName() != e.req.GetAgentName() || d.GetDeployment() != e.req.GetDeployment():
		case isLive(d):
			return d, nil
		case !e.fresh && e.unknown == nil:
			if e.over == nil {
				e.over = make(map[string]bool)
			}
			e.over[d.GetId()] = true
		case !e.over[d.GetId()] && d.GetState().GetDeletedAt() == 0:
			done = d
		}
	}
	return done, nil
}

// create sends CreateDispatch as Once: on a server that does not know request ids, repeating it blindly makes two agents.
//
// A server that knows the caller's request id from an earlier call answers with the dispatch of that time. If that is over, there
// is no agent, and this id cannot bring one.
func (e *ensuring) create(ctx context.Context) (*livekit.AgentDispatch, error) {
	return e.creating(ctx, false, func(ctx context.Context) (*livekit.AgentDispatch, error) {
		d, err := e.c.AgentDispatch.CreateDispatch(sentOnce(ctx), proto.CloneOf(e.req)) // see createRoom
		id, _ := requestID(ctx)
		switch {
		case err != nil:
		case d.GetId() == "":
			lost := localError(twirp.Internal, "the server's answer holds no dispatch", nil).named(ensureName)
			lost.OutcomeUnknown = true
			return nil, lost
		case e.given && (d.GetAgentName() != e.req.GetAgentName() || d.GetDeployment() != e.req.GetDeployment()):
			return nil, localError(twirp.FailedPrecondition, fmt.Sprintf("request id %q belongs to dispatch %s of another agent, %q %q: take a new"+
				" request id for each dispatch", id, d.GetId(), d.GetAgentName(), d.GetDeployment()), nil).named(ensureName)
		case !isLive(d) && (e.unknown == nil || e.over[d.GetId()] || d.GetState().GetDeletedAt() != 0):
			return nil, localError(twirp.FailedPrecondition, fmt.Sprintf("request id %q belongs to dispatch %s, which was deleted or whose"+
				" jobs have ended: take a new request id for a new dispatch", id, d.GetId()), nil).named(ensureName)
		}
		return d, err
	})
}

// creating runs one creation, and keeps in mind whether it may have happened although it failed.
func (e *ensuring) creating(ctx context.Context, room bool, do func(context.Context) (*livekit.AgentDispatch, error)) (
	*livekit.AgentDispatch, error) {
	limited, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	if err := e.c.flights.create(ctx, e.flight); err != nil {
		return nil, contextError(err, &outgoing{}).named(ensureName)
	}
	until, _ := limited.Deadline()
	d, err := do(limited)
	var failed *Error
	switch {
	case err == nil: // it stays set: a caller that leaves now must not hear that nothing was made
	case errors.As(err, &failed) && failed.OutcomeUnknown:
		e.unknown = err
		if room || !e.c.dedups { // no server knows the agent of a CreateRoom again by the id of a CreateDispatch
			e.settled = until.Add(outlives)
		}
		if !room {
			e.late = until.Add(outlives)
		}
	case e.unknown == nil && !e.fresh: // a room that this flight made has the agent already
		e.flight.creating.Store(false)
	}
	return d, err
}

// worthAnotherLook reports whether a failed round may go better a second time: a look-up failed, or a creation's outcome is
// unknown.
func worthAnotherLook(err error) bool {
	var failed *Error
	if !errors.As(err, &failed) || isHopeless(err) || failed.Code() == twirp.Canceled && errors.Is(err, context.Canceled) {
		return false // the flight was given up; a server's own "canceled" says no more than its deadline_exceeded
	}
	return failed.OutcomeUnknown || errors.Is(err, ErrCannotTell) || failed.Code() == twirp.Unauthenticated // no token for a moment
}

// cannotTell is a failed look-up. Where calling again cannot help it stays what it is, since ErrCannotTell says that it can.
func cannotTell(err error) error {
	if isHopeless(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCannotTell, err)
}

// isLive reports whether a dispatch still stands for an agent: it was not deleted, and not all its jobs have ended.
func isLive(d *livekit.AgentDispatch) bool {
	if d.GetState().GetDeletedAt() != 0 {
		return false
	}
	jobs := d.GetState().GetJobs()
	for _, job := range jobs {
		if !hasEnded(job) {
			return true
		}
	}
	return len(jobs) == 0
}

// hasEnded reports whether a job is over. One that is to be tried again is not, whatever its status.
func hasEnded(job *livekit.Job) bool {
	switch job.GetState().GetStatus() {
	case livekit.JobStatus_JS_SUCCESS, livekit.JobStatus_JS_FAILED, livekit.JobStatus_JS_CANCELLED:
		return job.GetState().GetReason() != livekit.JobStateReason_JSR_RETRYING
	}
	return false
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type sentOnceKey struct{}

// sentOnce makes a CreateDispatch of the context go out as Once.
func sentOnce(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentOnceKey{}, true)
}

func isSentOnce(ctx context.Context) bool {
	on, _ := ctx.Value(sentOnceKey{}).(bool)
	return on
}
