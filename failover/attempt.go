package failover

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Why an attempt's context was ended by its call. The caller's own context has causes of its own.
var (
	errNoConnection = errors.New("no connection within " + dialLimit.String())
	errSlow         = errors.New("no answer within the attempt's time")
	errLost         = errors.New("another attempt was faster")
	errResend       = errors.New("the server refused the request without processing it")
	errUnclear      = errors.New("the connection failed, and whether the server processed the request is not known")
)

// errEnded is what comes of a goroutine that did not come back.
var errEnded = errors.New("a transport, a body or a hook of the user's ended the goroutine (runtime.Goexit)")

// reach is how far an attempt is known to have come. It is proven by net/http's own trace, not guessed from errors.
type reach = int32

const (
	reachUnknown   reach = iota // nothing seen: not net/http, or not begun
	reachWaiting                // a connection is being looked for: nothing can have been sent
	reachConnected              // there is a connection: the request may be on its way
	reachSealed                 // given up while waiting; a connection that comes now carries nothing
)

// attempt is one request in flight. Its hooks may run on any goroutine.
type attempt struct {
	call    *call
	info    Attempt // as it began; not changed after that
	origin  origin
	carrier carrier
	listSeq uint64 // the region list's state when the attempt began
	record  int    // its place in the trail, from 1; owned by the loop
	slow    bool   // its patience has run out; owned by the loop
	given   bool   // its result was delivered, or given up; under the call's mu

	endedFor error // why the loop ended its context, nil if it did not; owned by the loop
	endedAt  time.Time

	patience time.Duration // 0: it has all the time there is

	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func() bool // RTC: unties ctx from the call's context
	timer  *time.Timer // RTC: the attempt's limit
	mu     sync.Mutex
	kept   bool     // RTC: there is a connection, which ctx belongs to from now on; under mu
	conn   net.Conn // that the request was given; under mu

	result result // what came of it; read by nobody else before it is delivered

	body   bytes.Reader
	again  atomic.Pointer[bytes.Reader] // the body, asked for again
	trace  httptrace.ClientTrace
	req    *http.Request // nil for Connect
	reach  atomic.Int32
	wrote  atomic.Bool // headers of the request were written
	reused atomic.Bool
}

// result is what came of an attempt.
type result struct {
	attempt    *attempt
	info       Attempt
	resp       *http.Response // with its body in memory, or a 101 with its connection
	err        error
	seen       seen
	retryAfter time.Duration
	stated     bool // retryAfter was stated
	location   string
	body       memoryBody // of resp
}

// begin gives the attempt its context. That of an API attempt is ended by the call's goroutine, which waits for the caller's
// context anyway. That of an RTC attempt is tied to the call until it succeeds, since the connection that it made outlives the
// call.
func (a *attempt) begin() {
	if !a.call.pol.rtc {
		a.ctx, a.cancel = context.WithCancelCause(uncancelled{a.call.ctx})
		return
	}
	parent := a.call.ctx
	a.ctx, a.cancel = context.WithCancelCause(context.WithoutCancel(parent))
	a.stop = context.AfterFunc(parent, func() { a.cut(context.Cause(parent)) })
	a.timer = time.AfterFunc(a.call.pol.limit, func() { a.cut(errSlow) })
}

// cut ends an RTC attempt that has no connection yet.
func (a *attempt) cut(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.kept {
		a.cancel(cause)
	}
}

// untie frees the attempt's context from the call's and from its limit. It reports whether it was tied.
func (a *attempt) untie() bool {
	if a.stop == nil {
		return false
	}
	a.stop()
	a.timer.Stop()
	return true
}

// endContext ends the attempt's context, unless it made a connection that goes on.
func (a *attempt) endContext(r *result) {
	if a.untie() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.kept = r.resp != nil && r.resp.StatusCode == http.StatusSwitchingProtocols || a.call.inline && r.err == nil
		if a.kept {
			return
		}
	}
	a.cancel(nil)
	a.carrier.release()
}

// endedBy is why the attempt was ended, by its call or together with it; nil if it was not.
func (a *attempt) endedBy() error {
	if cause := context.Cause(a.ctx); cause != nil {
		return cause
	}
	return a.call.endedBy()
}

func (a *attempt) getConn(string) {
	if !a.reach.CompareAndSwap(reachUnknown, reachWaiting) && !a.wrote.Load() {
		a.reach.CompareAndSwap(reachConnected, reachWaiting) // that connection was gone before it was written to
	}
}

func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	a.reused.Store(info.Reused)
	if !info.Reused && !a.call.pol.rtc { // an upgrade has HTTP/1 for itself; what a connection speaks does not change, and asking it costs
		a.call.t.carriers.http1.Store(!a.carrier.speaksHTTP2(info.Conn))
	}
	a.mu.Lock()
	before := a.conn
	a.conn = info.Conn
	a.mu.Unlock()
	if a.wrote.Load() && len(a.call.body) == 0 {
		a.sentAgain(before, info.Conn)
	}
	a.reach.CompareAndSwap(reachUnknown, reachConnected)
	if !a.reach.CompareAndSwap(reachWaiting, reachConnected) && a.reach.Load() == reachSealed {
		a.discard(info)
	}
}

// end ends an attempt of an API call, whose call goes on.
func (a *attempt) end(why error, now time.Time) {
	a.endedFor, a.endedAt = why, now
	a.cancel(why)
}

func (a *attempt) wroteHeaders() { a.wrote.Store(true) }

// neverSent reports whether it is proven that nothing of the request left. Asked while the attempt is running, it seals it.
func (a *attempt) neverSent(running bool) bool {
	if running && len(a.call.body) == 0 && !a.direct() || a.wrote.Load() {
		return false
	}
	return a.reach.CompareAndSwap(reachWaiting, reachSealed) || a.reach.Load() == reachSealed
}

// direct reports whether nothing of a user's stands between the attempt and net/http.
func (a *attempt) direct() bool {
	return a.carrier.tr != nil && a.carrier.rt == http.RoundTripper(a.carrier.tr)
}

// waiting reports whether the attempt is still looking for a connection.
func (a *attempt) waiting() bool { return a.reach.Load() == reachWaiting }

// prepare makes the attempt's request. It is called on the caller's goroutine: a caller may change the header of its request as
// soon as the call is over, which may be before the attempt's goroutine has begun or ended.
func (a *attempt) prepare() {
	a.trace = httptrace.ClientTrace{GetConn: a.getConn, GotConn: a.gotConn, WroteHeaders: a.wroteHeaders}
	a.req = a.call.requestFor(a, httptrace.WithClientTrace(a.ctx, &a.trace))
}

// roundTrip makes the attempt over HTTP.
func (a *attempt) roundTrip() *result {
	resp, err := roundTrip(a.carrier.rt, a.req)
	if err != nil {
		return a.failed(err)
	}
	return a.answered(resp)
}

// roundTrip holds a transport, which may be a user's, to the contract of http.RoundTripper: an answer with a body, or an error.
func roundTrip(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := rt.RoundTrip(req)
	switch {
	case err == nil && resp == nil:
		return nil, errors.New("the transport returned neither an answer nor an error")
	case resp == nil:
		return nil, err
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	if err != nil { // an answer beside it is not to be leaked
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// failed reads a failure to get an answer.
func (a *attempt) failed(err error) *result {
	r := &a.result
	*r = result{attempt: a, err: err, seen: seen{reused: a.reused.Load()}}
	unsent := a.neverSent(false)
	switch cause := a.endedBy(); {
	case cause == errNoConnection && unsent:
		r.err, r.seen.failure = cause, failedUnsent
	case cause == errSlow, cause == errNoConnection:
		r.err, r.seen.failure = cause, failedSlow
	case cause == errResend, refused(err):
		r.err, r.seen.failure = errResend, failedResend
	case cause == errUnclear:
		r.err, r.seen.failure = cause, failedBroken
	case cause != nil:
		r.seen.failure, r.seen.unsent = failedContext, unsent
	case unsent:
		r.seen.failure = failedUnsent
	case a.reach.Load() == reachUnknown && a.direct():
		r.seen.failure = failedRequest // net/http refused it before looking for a connection
	default:
		r.seen.failure = failedBroken
	}
	return r
}

// answered reads an answer to its end.
func (a *attempt) answered(resp *http.Response) *result {
	c := a.call
	r := &a.result
	*r = result{attempt: a, resp: resp, seen: seen{status: resp.StatusCode, reused: a.reused.Load()}}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if !c.pol.rtc && a.req.Header.Get("Upgrade") == "" { // nobody asked for a connection: as a body it may never end
			resp.Body.Close()
			resp.Body, resp.ContentLength = http.NoBody, 0
		}
		return r
	}
	if resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests {
		r.retryAfter, r.stated = parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified {
		r.location = resp.Header.Get("Location")
		r.seen.redirect = r.location != ""
	}

	var body []byte
	var err error
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		r.seen.typed = sameType(a.req.Header.Get("Content-Type"), resp.Header.Get("Content-Type"))
		if c.req.Method != http.MethodHead {
			body, err = readAnswer(resp)
		}
	} else {
		body, r.seen.cut = a.readRefusal(resp)
		r.seen.sip = hasSIPStatus(body)
	}
	resp.Body.Close()
	switch {
	case errors.Is(err, errTooLarge):
		r.err, r.seen.failure = err, failedTooLarge
	case err != nil && a.endedBy() != nil:
		status := r.seen.status
		r = a.failed(err)
		r.seen.status = status
	case err != nil:
		r.err, r.seen.failure = err, failedTrunc
	}
	if r.err != nil {
		r.resp = nil
		return r
	}
	r.body.Reset(body)
	resp.Body = &r.body
	if c.req.Method != http.MethodHead { // whose answer says how long another's is
		resp.ContentLength = int64(len(body))
	}
	return r
}

// memoryBody is an answer's body that was read already.
type memoryBody struct{ bytes.Reader }

// Close does nothing: there is nothing to free.
func (*memoryBody) Close() error { return nil }

// uncancelled is a context with the values and the deadline of another that does not end with it.
type uncancelled struct{ context.Context }

func (uncancelled) Done() <-chan struct{} { return nil }
func (uncancelled) Err() error            { return nil }
