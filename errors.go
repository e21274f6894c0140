package lkrpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/twitchtv/twirp"
)

// Error is what every API call that fails returns: a twirp.Error with what a person needs to know of the failure. Get at it with
// errors.As. errors.Is sees through it to the context's error, where the caller's own context ended the call, and to errors of
// the transport. No text of it holds a token or a secret.
//
// An Error is not changed after it was returned, so reading it is safe for concurrent use.
type Error struct {
	Service string // "RoomService"
	Method  string // "CreateRoom"

	// HTTPStatus is the status of the answer that the call ended with, 0 if it ended without one.
	HTTPStatus int
	// RetryAfter is how long the server asks to stay away (429, 503). 0: it said nothing.
	RetryAfter time.Duration
	// RequestID is the X-Livekit-Request-Id of the call: what LiveKit's support wants to know. Empty if nothing was sent.
	RequestID string
	// OutcomeUnknown is set when at least one attempt may have taken effect. Do not take such a failure for "it did not happen":
	// look. On LiveKit Cloud, a call that creates something may also be made again with this RequestID (see WithRequestID), but
	// never one that somebody notices, such as CreateSIPParticipant: no id keeps a phone from ringing again. For calls that only
	// read it says nothing.
	OutcomeUnknown bool
	// Attempts are the requests of the call, in the order they began.
	Attempts []failover.Attempt

	code  twirp.ErrorCode
	msg   string
	meta  map[string]string
	cause error
	reads bool // OutcomeUnknown is of a call that only reads, and not worth a word
}

// Code returns the Twirp code: the server's; unavailable for a transport that failed, a redirect, a closed client and a gateway's
// 502 to 504 and 520 to 524; deadline_exceeded or canceled if the caller's context ended the call; internal for an answer that is
// no protobuf. A call that was not sent has invalid_argument, or unauthenticated if the credentials gave no token, or
// failed_precondition if the server has no such API.
func (e *Error) Code() twirp.ErrorCode { return e.code }

// Msg returns the server's message, or ours: one line without control characters, at most 500 bytes of a text that is not ours.
func (e *Error) Msg() string { return e.msg }

// Meta returns the server's metadata of this key, or "". A value that is no text is returned as it stands in the JSON.
func (e *Error) Meta(key string) string {
	if e == nil {
		return ""
	}
	return e.meta[key]
}

// MetaMap returns a copy of the server's metadata.
func (e *Error) MetaMap() map[string]string { return maps.Clone(e.meta) }

// WithMeta returns a copy with one more entry.
func (e *Error) WithMeta(key, value string) twirp.Error {
	c := *e
	c.meta = maps.Clone(e.meta)
	if c.meta == nil {
		c.meta = map[string]string{}
	}
	c.meta[key] = value
	return &c
}

// Unwrap returns what caused the error on this side, or nil: a server's error has no cause here.
func (e *Error) Unwrap() error { return e.cause }

// Error names the method, the code and the message, whether the call may have taken effect (unless it only reads), the request id
// and each attempt.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "twirp error %s: %s/%s: %s", e.code, e.Service, e.Method, e.msg)
	if e.OutcomeUnknown && !e.reads {
		b.WriteString(" [outcome unknown: it may have taken effect]")
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, " [retry after %v]", e.RetryAfter)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " [request id %s]", e.RequestID)
	}
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, " [attempt %s]", a)
	}
	return b.String()
}

// SIPStatus returns the SIP status (RFC 3261, 21) with which a call ended: 486, "Busy Here". They are in the error's metadata, as
// sip_status_code and sip_status. ok is false if err has no such code from 100 to 699; reason may be empty.
func SIPStatus(err error) (code int, reason string, ok bool) {
	var e twirp.Error
	if !errors.As(err, &e) {
		return 0, "", false
	}
	digits := e.Meta("sip_status_code")
	status, convErr := strconv.ParseUint(digits, 10, 16) // no sign
	if convErr != nil || len(digits) != 3 || status < 100 || status > 699 {
		return 0, "", false
	}
	return int(status), e.Meta("sip_status"), true
}

func (e *Error) named(n methodName) *Error {
	e.Service, e.Method, e.reads = n.service, n.method, n.reads()
	return e
}

func (e *Error) withTrail(t *failover.Trail) *Error {
	e.RequestID, e.OutcomeUnknown, e.RetryAfter, e.Attempts = t.RequestID, t.OutcomeUnknown, t.RetryAfter, t.Attempts
	if t.BudgetSpent {
		e.msg += " (not repeated: the local retry budget is spent)"
	}
	return e
}

// localError is the error of a call that was not sent.
func localError(code twirp.ErrorCode, msg string, cause error) *Error {
	return &Error{code: code, msg: msg, cause: cause}
}

// contextError is the error of a call that the caller's context ended.
func contextError(err error, out *outgoing) *Error {
	code := twirp.Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		code = twirp.DeadlineExceeded
	}
	return (&Error{code: code, msg: failover.Line(err.Error(), maxText), cause: err}).withTrail(&out.trail)
}

// transportError is the error of a call that has no answer.
func transportError(err error, out *outgoing) *Error {
	if out.trail.Expired {
		return contextError(causeOf(err), out)
	}
	e := &Error{code: twirp.Unavailable, msg: failover.Line(out.hide(causeOf(err).Error()), maxText), cause: err}
	if attempts := out.trail.Attempts; len(attempts) > 0 {
		e.HTTPStatus = attempts[len(attempts)-1].Status
	}
	return e.withTrail(&out.trail)
}

// contextEnd returns the context's error in err, or nil.
func contextEnd(err error) error {
	for _, end := range [...]error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return end
		}
	}
	return nil
}

// causeOf takes the failover layer's error apart: what it says beside its cause is in the Error's own fields.
func causeOf(err error) error {
	var f *failover.Error
	if errors.As(err, &f) {
		return f.Err
	}
	return err
}

// errorOf makes an *Error of whatever the generated client returned.
func errorOf(err error, out *outgoing) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if ended := contextEnd(err); ended != nil { // seen by the generated code, before the request or after the answer
		e = contextError(ended, out)
		e.OutcomeUnknown = e.OutcomeUnknown || len(e.Attempts) > 0
		return e
	}
	// The answer stood, but could not be decoded; or the request could not be encoded.
	e = &Error{code: twirp.InvalidArgument, msg: failover.Line(err.Error(), maxText), cause: err}
	e.withTrail(&out.trail)
	if attempts := out.trail.Attempts; len(attempts) > 0 {
		e.code = twirp.Internal
		e.HTTPStatus, e.OutcomeUnknown = attempts[len(attempts)-1].Status, true
		e.msg = fmt.Sprintf("the answer with status %d is no readable protobuf: %s", e.HTTPStatus, e.msg)
	}
	return e
}
