package lkrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

const (
	agentTime   = 30 * time.Second // of WaitForAgent without a deadline
	firstPoll   = 250 * time.Millisecond
	slowestPoll = 2 * time.Second
	pollTime    = 10 * time.Second // of one poll: a request that is lost must not take the whole wait
	unseenPolls = 3                // so many answers without the dispatch ...
	unseenTime  = 2 * time.Second  // ... over so long mean that it is gone, if it was never seen: it may not show at once
)

// The errors that WaitForAgent's errors wrap, for errors.Is.
var (
	// ErrNoAgent: no job came in time. If no worker of that name was registered when the dispatch was made, none ever comes to
	// it. Delete it, then ensure again; merely ensuring again returns the same dead one. errors.As gives a *NoAgentError.
	ErrNoAgent = errors.New("lkrpc: no agent has come")
	// ErrJobFailed: an agent took the job, and it failed. errors.As gives a *JobFailedError.
	ErrJobFailed = errors.New("lkrpc: the agent's job failed")
	// ErrDispatchGone: the dispatch was deleted, or its room has ended. errors.As gives a *DispatchGoneError.
	ErrDispatchGone = errors.New("lkrpc: the dispatch is gone")
)

// NoAgentError is ErrNoAgent with what was seen last.
type NoAgentError struct {
	// Dispatch is what the last poll that was answered showed; nil if none did.
	Dispatch *livekit.AgentDispatch
	// Err is the *Error of the last poll, if it failed; else the context's error.
	Err error
}

// Error names the dispatch, and quotes the last poll if that failed.
func (e *NoAgentError) Error() string {
	var failed *Error
	if e.Dispatch == nil {
		return fmt.Sprintf("%v: the dispatch could not be looked up: %v", ErrNoAgent, e.Err)
	}
	text := fmt.Sprintf("%v to dispatch %s of %q in room %q; is a worker of that name registered? Delete the dispatch before ensuring"+
		" it again", ErrNoAgent, e.Dispatch.GetId(), e.Dispatch.GetAgentName(), e.Dispatch.GetRoom())
	if errors.As(e.Err, &failed) {
		text += fmt.Sprintf(" (the last look-up failed: %v)", failed)
	}
	return text
}

// Unwrap returns ErrNoAgent, Err and context.DeadlineExceeded, since it was the time that ended the wait.
func (e *NoAgentError) Unwrap() []error { return []error{ErrNoAgent, e.Err, context.DeadlineExceeded} }

// JobFailedError is ErrJobFailed with the job.
type JobFailedError struct {
	Dispatch *livekit.AgentDispatch // with all its jobs
	Job      *livekit.Job           // the last that failed; the agent's own text is its State.Error
}

// Error names the job and quotes the agent's own error.
func (e *JobFailedError) Error() string {
	text := e.Job.GetState().GetError()
	if text == "" {
		text = e.Job.GetState().GetStatus().String()
	}
	return fmt.Sprintf("%v: job %s of %q: %s", ErrJobFailed, e.Job.GetId(), e.Dispatch.GetAgentName(), excerpt([]byte(text)))
}

// Unwrap returns ErrJobFailed.
func (e *JobFailedError) Unwrap() error { return ErrJobFailed }

// DispatchGoneError is ErrDispatchGone with what was seen last.
type DispatchGoneError struct {
	Room, DispatchID string                 // as they were asked for
	Dispatch         *livekit.AgentDispatch // nil if it was never seen
}

// Error names the dispatch and the room.
func (e *DispatchGoneError) Error() string {
	return fmt.Sprintf("%v: %s in room %q", ErrDispatchGone, e.DispatchID, e.Room)
}

// Unwrap returns ErrDispatchGone.
func (e *DispatchGoneError) Unwrap() error { return ErrDispatchGone }

// WaitForAgent waits until an agent has taken a dispatch, and returns its job: one that runs, or one that has succeeded already.
// It waits until the context's deadline, or 30 s without one, asking after 250 ms and then less often, every 2 s at last. A
// failed poll does not end the wait, nor do credentials that have no token for a moment. It is safe for concurrent use.
//
// At the deadline it returns [ErrNoAgent], with the dispatch as it was seen last: delete that before another is ensured, as
// [Client.EnsureDispatch] says. If all jobs have failed it returns [ErrJobFailed], with the job and its text; if the dispatch
// is gone [ErrDispatchGone]; that its room has ended it knows only if the credentials may list rooms. A token that the server
// refuses (unauthenticated, permission_denied), a name that is missing or is no text, a context that is cancelled and a client
// that is closed end it with an *Error.
func (c *Client) WaitForAgent(ctx context.Context, room, dispatchID string) (*livekit.Job, error) {
	name := methodName{"AgentDispatchService", "WaitForAgent"}
	switch {
	case room == "":
		return nil, localError(twirp.InvalidArgument, "no room is named", nil).named(name)
	case dispatchID == "":
		return nil, localError(twirp.InvalidArgument, "no dispatch is named", nil).named(name)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, agentTime)
		defer cancel()
	}
	w := waiting{room: room, id: dispatchID, began: time.Now()}
	for wait := firstPoll; ; wait = min(wait*3/2, slowestPoll) {
		poll, cancel := context.WithTimeout(ctx, pollTime)
		list, err := c.AgentDispatch.ListDispatch(poll, &livekit.ListAgentDispatchRequest{Room: room, DispatchId: dispatchID})
		cancel()
		if err != nil {
			if isHopeless(err) {
				return nil, err
			}
			if w.err == nil || ctx.Err() == nil { // why earlier ones failed says more than that the time is up
				w.err = err
			}
			if c.roomEnded(ctx, room, err) {
				if end := w.absent(); end != nil {
					return nil, end
				}
			}
		} else if job, end := w.see(list.GetAgentDispatches()); job != nil || end != nil {
			return job, end
		}
		if ctx.Err() == nil {
			pause(ctx, wait)
		}
		switch err := ctx.Err(); {
		case err == nil:
		case errors.Is(err, context.DeadlineExceeded):
			if w.err == nil {
				w.err = err
			}
			return nil, &NoAgentError{w.last, w.err}
		default:
			return nil, contextError(err, &outgoing{}).named(name)
		}
	}
}

// isHopeless reports whether asking again cannot help: the server refuses the token, the request is wrong, or the client is
// closed. Credentials that have no token now may have one later.
func isHopeless(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() {
	case twirp.PermissionDenied, twirp.InvalidArgument:
		return true
	case twirp.Unauthenticated:
		return len(e.Attempts) > 0
	case twirp.Unavailable:
		return len(e.Attempts) == 0 // an open client would have made one
	}
	return false
}

// roomEnded reports whether a look at a room's dispatches failed because there is no such room any more. Servers answer that as they
// answer an outage ("no response from servers"), and only the list of rooms tells the two apart.
func (c *Client) roomEnded(ctx context.Context, room string, err error) bool {
	var failed *Error
	if !errors.As(err, &failed) || failed.HTTPStatus == 0 || c.Room == nil { // a Client of fakes
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	exists, err := c.roomExists(ctx, room)
	return err == nil && !exists
}

// waiting is what WaitForAgent has seen.
type waiting struct {
	room, id string
	began    time.Time
	last     *livekit.AgentDispatch
	unseen   int
	err      error // of the last poll, nil if it was answered
}

// see reads one answer: a job to return, an end, or neither.
func (w *waiting) see(list []*livekit.AgentDispatch) (*livekit.Job, error) {
	w.err = nil
	var d *livekit.AgentDispatch
	for _, x := range list {
		if x.GetId() == w.id {
			d = x
		}
	}
	if d == nil {
		return nil, w.absent()
	}
	w.last = d
	var failed *livekit.Job
	pending := false
	for _, job := range d.GetState().GetJobs() {
		switch status := job.GetState().GetStatus(); {
		case status == livekit.JobStatus_JS_RUNNING, status == livekit.JobStatus_JS_SUCCESS:
			return job, nil
		case hasEnded(job):
			failed = job
		default:
			pending = true
		}
	}
	switch {
	case d.GetState().GetDeletedAt() != 0:
		return nil, &DispatchGoneError{w.room, w.id, d}
	case failed != nil && !pending:
		return nil, &JobFailedError{d, failed}
	}
	return nil, nil
}

// absent counts an answer that does not have the dispatch. It is an end if the dispatch was seen before, or often enough was not.
func (w *waiting) absent() error {
	w.unseen++
	if w.last != nil || w.unseen >= unseenPolls && time.Since(w.began) >= unseenTime {
		return &DispatchGoneError{w.room, w.id, w.last}
	}
	return nil
}
