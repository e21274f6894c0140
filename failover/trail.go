package failover

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Attempt is one request of a call, as it went.
type Attempt struct {
	// Number counts the attempts of a call from 1. A request that was answered with 451 and taken to another region is not
	// counted: the next one has the same number.
	Number int
	// Origin is where the request went: "https://proj.livekit.cloud".
	Origin string
	// Status is the HTTP status of the answer, 0 without one.
	Status int
	// Err is why there is no usable answer, nil with one. Its text holds no token.
	Err error
	// Start is when the attempt began.
	Start time.Time
	// Duration is from Start to the whole answer or the failure, or, where the call ended first, to that moment.
	Duration time.Duration
	// Wait is the backoff before Start, 0 for the first attempt and after a 451.
	Wait time.Duration
	// Reason says what the attempt came to and, where it was the last, why no other followed.
	Reason string
}

// String returns the attempt on one line: number, origin, what happened, with at most 500 bytes of Err's text, how long it took.
func (a Attempt) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", a.Number, a.Origin)
	if a.Wait > 0 {
		fmt.Fprintf(&b, " after %v", a.Wait.Round(time.Millisecond))
	}
	fmt.Fprintf(&b, ": %s", a.Reason)
	if a.Err != nil {
		fmt.Fprintf(&b, ": %s", textOf(a.Err))
	}
	fmt.Fprintf(&b, " (%v)", a.Duration.Round(time.Millisecond))
	return b.String()
}

// Trail is what happened in one call.
type Trail struct {
	// RequestID is the X-Livekit-Request-Id of every attempt; empty for an RTC connection.
	RequestID string
	// Attempts are the requests of the call in the order they began. Those that were still running when the call ended are
	// among them.
	Attempts []Attempt
	// OutcomeUnknown is set when the call did not succeed and at least one attempt may have taken effect all the same.
	OutcomeUnknown bool
	// RetryAfter is how long the last answer, a 429 or 503, asks to stay away. 0: it said nothing.
	RetryAfter time.Duration
	// BudgetSpent is set when the call was not repeated because the local retry budget of its host was empty.
	BudgetSpent bool
	// Expired is set when the call ended because its context was done, or, without a deadline there, its own time was up.
	Expired bool
	// Pinned counts the steps taken to another region after a 451.
	Pinned int
}

// Error is why a call has no answer. It is what Transport.RoundTrip and Transport.Connect return for a call that was begun;
// errors.Is and errors.As see through it to the last attempt's error or to the context's.
type Error struct {
	Trail
	// Op is what was called: "POST /twirp/livekit.RoomService/ListRooms", "connect".
	Op string
	// Host is the host that the call was made to.
	Host string
	// Err is what ended the call.
	Err error
}

// Error names the call, what ended it, whether it may have taken effect, and each attempt. It is one line without control
// characters and holds no token; of Err's text and of each attempt's it quotes at most 500 bytes.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s", e.Op, e.Host, textOf(e.Err))
	if e.OutcomeUnknown {
		b.WriteString(" [outcome unknown: it may have taken effect]")
	}
	if e.BudgetSpent {
		b.WriteString(" [local retry budget spent]")
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " [request id %s]", e.RequestID)
	}
	for i, a := range e.Attempts {
		sep := "; attempt "
		if i == 0 {
			sep = " [attempt "
		}
		b.WriteString(sep + a.String())
	}
	if len(e.Attempts) > 0 {
		b.WriteByte(']')
	}
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the call ended at its deadline, as net.Error does.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// StatusError is an HTTP status where an error is wanted: what the dial function of Connect returns when a server refused.
type StatusError struct {
	Code int   // the HTTP status
	Err  error // what the library said, or nil
}

// Error returns the status and the text of Err.
func (e *StatusError) Error() string {
	if e.Err == nil {
		return "HTTP " + statusReason(e.Code)
	}
	return "HTTP " + strconv.Itoa(e.Code) + ": " + e.Err.Error()
}

// StatusCode returns Code.
func (e *StatusError) StatusCode() int { return e.Code }

// Unwrap returns Err.
func (e *StatusError) Unwrap() error { return e.Err }
