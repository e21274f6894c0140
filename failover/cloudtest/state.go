package cloudtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// state is what the project holds, the same in all regions. Safe for concurrent use.
type state struct {
	dedup bool
	made  *made

	creating sync.Mutex
	replies  map[replyKey]proto.Message // of calls that may come again

	mu         sync.Mutex
	rooms      map[string]*room
	dispatches map[string]*dispatch // deleted ones too: their ids stay taken
	workers    []*worker
}

type replyKey struct{ rpc, id string }

func newState(c *Cloud) *state {
	return &state{
		dedup:      !c.noDedup,
		made:       &made{dedup: !c.noDedup},
		rooms:      make(map[string]*room),
		dispatches: make(map[string]*dispatch),
		replies:    make(map[replyKey]proto.Message),
	}
}

// once runs a call, or answers it like the first time if it is the repeat of one that succeeded.
func (s *state) once(call *rpc, run func() (any, error)) (any, error) {
	if !s.dedup || call.id == "" || !call.keyed() {
		return run()
	}
	s.creating.Lock() // a repeat may arrive while the first is still running
	defer s.creating.Unlock()
	key := replyKey{call.name(), call.id}
	if known := s.replies[key]; known != nil {
		call.unchanged = true
		return proto.Clone(known), nil
	}
	resp, err := run()
	if m, ok := resp.(proto.Message); ok && err == nil {
		s.replies[key] = proto.Clone(m)
	}
	return resp, err
}

// newID returns an id as LiveKit makes them: a prefix that tells the kind, and some characters.
func newID(prefix string) string { return prefix + rand.Text()[:12] }

// derivedID returns the id that belongs to a request id, so that the repeat of a request means the same thing.
func derivedID(prefix, rpc, requestID string) string {
	sum := sha256.Sum256([]byte(rpc + "\x00" + requestID))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:12]
}

// nowNano is the time in the unit that dispatches and jobs carry.
func nowNano() int64 { return time.Now().UnixNano() }
