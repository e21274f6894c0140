package failover

import (
	"context"
	"fmt"
	"time"
)

// RequestIDHeader carries the id of one logical call: the same on every attempt, different between calls.
const RequestIDHeader = "X-Livekit-Request-Id"

// Call is what the maker of a request knows of it and a Transport cannot see. The zero value is a Keyed request with a
// request id of its own. Package lkrpc fills it in for every LiveKit method; whoever uses a Transport alone may do the same.
type Call struct {
	// Repeat says when the request may be sent again.
	Repeat Repeat

	// Overtake lets the next attempt of a Keyed request start while a slow one keeps running. It is for creates whose id the
	// server derives from the request id, so that both attempts end in the same thing. Safe requests are always overtaken.
	Overtake bool

	// Floor is the least time that the call is given where the context has no deadline. 0: 10 s for each possible attempt.
	Floor time.Duration

	// RequestID is sent as X-Livekit-Request-Id: 1 to 128 visible ASCII characters. Empty: a fresh UUID.
	RequestID string

	// Off turns failover off for this call, like the option Off for all calls.
	Off bool

	// Trail, if not nil, receives what happened, on success too. It is complete when RoundTrip returns, and written by nobody
	// after that.
	Trail *Trail
}

type callKey struct{}

// WithCall returns a context that describes the next request made with it. The Call is read while the request runs and must
// not be changed until then.
func WithCall(ctx context.Context, call *Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

var plainCall Call

func callOf(ctx context.Context) *Call {
	if call, _ := ctx.Value(callKey{}).(*Call); call != nil {
		return call
	}
	return &plainCall
}

// CheckRequestID returns an error unless id can be a request id: 1 to 128 visible ASCII characters.
func CheckRequestID(id string) error {
	if len(id) == 0 || len(id) > 128 {
		return fmt.Errorf("failover: a request id has 1 to 128 characters, this one has %d", len(id))
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return fmt.Errorf("failover: request id %q: character %d is not visible ASCII", id, i+1)
		}
	}
	return nil
}
