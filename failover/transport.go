package failover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Transport is an http.RoundTripper that survives a lost request, a dead region and a pinned project. It can stand under any
// http.Client; package lkrpc puts it under every LiveKit API. Paths under /twirp and /rtc get the policies of this package;
// any other request passes through once, untouched. Safe for concurrent use.
type Transport struct {
	config
	carriers   *carriers
	background context.Context // of reads that no call owns
	end        context.CancelFunc

	mu    sync.RWMutex
	hosts map[origin]*hostState
}

// errClosed is why a Transport refuses calls after Close.
var errClosed = errors.New("failover: the transport is closed")

// hostState is what is remembered of one configured origin.
type hostState struct {
	origin   origin
	list     regionList
	health   health
	budget   budget
	prepared atomic.Bool // the next Connect begins with the list's first region
}

// New returns a Transport that sends its attempts through next.
//
// nil is an *http.Transport with this package's settings and the environment's proxy. An *http.Transport is cloned, never
// changed, and the clone's zero fields are set: 100 idle connections per host, kept for 45 s; HTTP/2 pings after 2 s of
// silence, answered within 2 s, and a connection closed that takes no byte for 4 s. Any other RoundTripper is used as it is; a
// repeat on a host whose connection broke then gets whatever connection it chooses, and fresh ones are its owner's matter. So is
// that it sends each request once. It is called on goroutines that nobody recovers: a panic of its own, or of a function given to an
// *http.Transport, ends the program. With a MaxConnsPerHost, waiting for a connection that is in use counts as connecting.
//
// An error names the option that is wrong.
func New(next http.RoundTripper, opts ...Option) (*Transport, error) {
	t := &Transport{hosts: make(map[origin]*hostState)}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("failover: option %d is nil", i+1)
		}
		if err := opt(&t.config); err != nil {
			return nil, err
		}
	}
	if tr, ok := next.(*http.Transport); ok && tr == nil {
		return nil, errors.New("failover: the *http.Transport is nil; pass a plain nil for the default transport")
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.carriers = newCarriers(next, t.wrap)
	if t.carriers.base.rt == nil {
		return nil, errors.New("failover: the function given to Wrap returned nil")
	}
	t.background, t.end = context.WithCancel(context.Background())
	return t, nil
}

// OriginsUnused says why the option Origins, or a URL of it, does nothing for calls to serverURL, and what helps: their host is
// named neither there nor by Hosts, or the URL is http and serverURL https. It is empty if there is no such reason, or serverURL is
// not a server URL. It is safe for concurrent use.
func (t *Transport) OriginsUnused(serverURL string) (why string) {
	configured, err := parseOrigin(serverURL)
	if err != nil || len(t.fixed) == 0 {
		return ""
	}
	switch kind := t.kindOf(configured); {
	case kind == foreignHost:
		return fmt.Sprintf("calls to %s get one attempt: add failover.Hosts(%q)", configured.host, hostName(configured.host))
	case t.fixedFor(kind):
		for _, o := range t.fixed {
			if !t.rules.trusted(configured, o) {
				return fmt.Sprintf("%s gets no calls that are made to %s, whose token would leave unencrypted: give it with https", o, configured)
			}
		}
	}
	return ""
}

// Dedups reports whether servers at serverURL are taken to know a request id that they have seen, so that a create which is
// repeated under its id creates nothing twice: those of Cloud projects and Cloud APIs. It is false for what is not a server
// URL. It is safe for concurrent use.
func (t *Transport) Dedups(serverURL string) bool {
	o, err := parseOrigin(serverURL)
	return err == nil && t.kindOf(o).dedups()
}

// Close ends the background reads and closes idle connections. Calls that are running go on; later ones fail. It returns nil.
func (t *Transport) Close() error {
	t.end()
	t.carriers.close()
	return nil
}

// RoundTrip implements http.RoundTripper. The request is not changed, its body is closed on every path, and the answer's body
// is in memory already, so that closing it frees nothing and a broken connection cannot cut it short. (The exceptions pass
// through as they are: 101 answers to who asked for one, whose body is the connection, and paths neither Twirp nor RTC.) The error of
// a call is an *Error; a closed Transport, a request without URL or header map, and what passes through have errors of their own.
//
// It returns by the deadline of the request's context. Without one, an API call gets 10 s for each possible attempt.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.checkRequest(req); err != nil {
		closeBody(req)
		return nil, err
	}
	kind := kindOfPath(req.URL.Path)
	configured, err := originOf(req.URL)
	if kind == otherPath || err != nil {
		return t.carriers.base.rt.RoundTrip(req)
	}
	c := &call{t: t, caller: req.Context(), ctx: req.Context(), ownReq: *req, ownURL: *req.URL, info: callOf(req.Context()), configured: configured}
	c.req, c.ownReq.URL = &c.ownReq, &c.ownURL
	c.kind = t.kindOf(configured)
	c.host = t.hostState(configured, c.kind)
	c.try = (*attempt).roundTrip
	if kind == rtcPath {
		c.pol = rtcPolicy(c.kind, t.off || c.info.Off)
		c.deadline, _ = c.ctx.Deadline()
	} else if err := c.prepareAPI(); err != nil {
		closeBody(req)
		return nil, c.refuse(err)
	}
	c.token = tokenIn(c.authHeader())
	if c.cancel != nil {
		defer c.cancel()
	}
	if err := c.readBody(); err != nil {
		return nil, c.refuse(err)
	}
	r, err := c.run()
	if err != nil {
		return nil, err
	}
	r.resp.Request = req
	return r.resp, nil
}

func (t *Transport) kindOf(o origin) hostKind { return t.rules.kind(hostName(o.host)) }

func (t *Transport) checkRequest(req *http.Request) error {
	switch {
	case t.background.Err() != nil:
		return errClosed
	case req.URL == nil:
		return errors.New("failover: the request has no URL")
	case req.Header == nil:
		return errors.New("failover: the request has no header map")
	}
	return nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// prepareAPI sets the policy, the deadline and the request id of an API call.
func (c *call) prepareAPI() error {
	if c.trail.RequestID = c.info.RequestID; c.trail.RequestID == "" {
		c.trail.RequestID = uuid.NewString()
	} else if err := CheckRequestID(c.trail.RequestID); err != nil {
		return err
	}
	left := time.Duration(-1)
	deadline, ok := c.ctx.Deadline()
	if ok {
		left = max(time.Until(deadline), 0)
	}
	c.pol = apiPolicy(c.kind, c.info, c.t.off || c.info.Off, left)
	if !ok {
		deadline = time.Now().Add(c.pol.callTime(c.info.Floor))
		c.ctx, c.cancel = context.WithDeadline(c.ctx, deadline)
	}
	c.deadline = deadline
	return nil
}

// refuse is the error of a call of which nothing was sent.
func (c *call) refuse(err error) error {
	if c.info.Trail != nil {
		*c.info.Trail = c.trail
	}
	return c.fail(err)
}

// hostState returns the memory of a configured origin. Origins that get one attempt and no region list need none.
func (t *Transport) hostState(o origin, kind hostKind) *hostState {
	if kind == foreignHost {
		return nil
	}
	t.mu.RLock()
	h := t.hosts[o]
	t.mu.RUnlock()
	if h != nil {
		return h
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if h = t.hosts[o]; h == nil {
		h = &hostState{origin: o}
		t.hosts[o] = h
	}
	return h
}
