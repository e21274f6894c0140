package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// remembered is how many keys, rooms and events the service knows at a time; the oldest is forgotten for a new one.
const remembered = 10_000

// calls is the state of the service: which calls run, which Idempotency-Keys were used for what, which events have been heard.
// It is in memory, and ends with the process. With several processes it belongs in a database; what keeps an agent from being
// dispatched twice is EnsureDispatch, not this.
//
// Safe for concurrent use.
type calls struct {
	mu     sync.Mutex
	keys   recent[*keyUse]
	rooms  recent[*call] // the newest call of each
	ends   recent[int64] // when a room of that name finished last, by LiveKit's clock, in seconds
	events recent[bool]  // by id
}

// keyUse is what an Idempotency-Key was used for.
type keyUse struct {
	req  callRequest
	call *call // nil until the call was made
}

// call is a room with an agent, from the dispatch to the end of the room.
type call struct {
	since time.Time // by LiveKit's clock
	ended bool
}

var (
	errKeyReused = &failure{status: http.StatusUnprocessableEntity,
		Message: keyHeader + " was used for another request: take a new key for each"}
	errKeyEnded = &failure{status: http.StatusConflict,
		Message: "the call that was made with this " + keyHeader + " has ended: take a new key for another"}
)

func newCalls() *calls {
	return &calls{keys: newRecent[*keyUse](remembered), rooms: newRecent[*call](remembered), ends: newRecent[int64](remembered),
		events: newRecent[bool](remembered)}
}

// claim notes that a request is about to be done under a key. The same request may come again, at the same time too, until its
// call has ended: then a retry that was long on its way must not begin another. A key is good for one request only. Without a key
// there is nothing to note.
func (c *calls) claim(key string, req callRequest) error {
	if key == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	use, ok := c.keys.get(key)
	switch {
	case !ok:
		c.keys.put(key, &keyUse{req: req})
	case use.req != req:
		return errKeyReused
	case use.call != nil && use.call.ended:
		return errKeyEnded
	}
	return nil
}

// begin notes that an agent is dispatched. Several participants of a room are in one call. If LiveKit's answer was long on its way,
// the room may have finished already.
func (c *calls) begin(key string, d *livekit.AgentDispatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	running, ok := c.rooms.get(d.GetRoom())
	if !ok || running.ended {
		created := d.GetState().GetCreatedAt()
		running = &call{since: time.Unix(0, created)}
		if end, ok := c.ends.get(d.GetRoom()); ok && created > 0 {
			running.ended = end > running.since.Unix()
		}
		c.rooms.put(d.GetRoom(), running)
	}
	if use, ok := c.keys.get(key); ok {
		use.call = running
	}
}

// finish ends the call of a room, and reports whether it was running. LiveKit may send an event twice, and late: what was heard
// before ends nothing, nor does what is older than the call, to the second; it is about an earlier room of that name.
func (c *calls) finish(event *livekit.WebhookEvent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := event.GetId(); id != "" { // else it cannot be told from others, and its time alone decides
		if _, heard := c.events.get(id); heard {
			return false
		}
		c.events.put(id, true)
	}
	room := event.GetRoom().GetName()
	if end, ok := c.ends.get(room); !ok || event.GetCreatedAt() > end {
		c.ends.put(room, event.GetCreatedAt())
	}
	running, ok := c.rooms.get(room)
	if !ok || running.ended || event.GetCreatedAt() < running.since.Unix() {
		return false
	}
	running.ended = true
	return true
}

// open counts the calls that run.
func (c *calls) open() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, call := range c.rooms.values {
		if !call.ended {
			n++
		}
	}
	return float64(n)
}
