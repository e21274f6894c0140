package failover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Connect drives dial until one region takes the connection. It serves any WebSocket library: dial gets a server URL in the
// scheme of serverURL (ws stays ws), with its path, adds what the library wants, and connects.
//
// dial is called up to ten times, one call after the other, on the goroutine of Connect: for serverURL first, then for each
// region once, in the order of the server's list. It gets a context that ends after 10 s, with ctx, and when dial has returned
// an error. Once dial has returned nil that context is never cancelled, so the connection may hold on to it. dial must return
// when its context ends, and an error then; see DialUntil for libraries that do not. A nil always counts as connected.
//
// An error of dial that has a method StatusCode() int, as *StatusError has, stands for that HTTP status. 403 and 451 mean that
// this project may not use the region; they, 408, 5xx and an error without a status lead to the next region. 400, 401, 404,
// 429 and any other status end it. 101, and what is no HTTP status, such as 0 or the code of a WebSocket close, count as none.
// Connect returns nil after dial did, else an *Error with every attempt; errors.As finds dial's own error in it. A serverURL that
// cannot be used, a nil dial and a closed Transport have errors of their own.
//
// token is the bearer token that the region list is read with, at the first failure. It is not given to dial.
func (t *Transport) Connect(ctx context.Context, serverURL, token string, dial func(ctx context.Context, serverURL string) error) error {
	u, o, err := t.rtcURL(serverURL)
	if err != nil {
		return err
	}
	if dial == nil {
		return errors.New("failover: Connect needs a dial function")
	}
	info := callOf(ctx)
	kind := t.kindOf(o)
	c := &call{t: t, caller: ctx, ctx: ctx, info: info, kind: kind, configured: o, host: t.hostState(o, kind),
		pol: rtcPolicy(kind, t.off || info.Off), header: bearer(token), token: token, inline: true}
	c.deadline, _ = ctx.Deadline()
	c.try = func(a *attempt) *result {
		target := *u
		if a.origin != o {
			target.Scheme, target.Host = schemeLike(u.Scheme, a.origin.scheme), a.origin.host
		}
		return a.dialled(dial(a.ctx, target.String()))
	}
	_, err = c.run()
	return err
}

// schemeLike keeps ws and http apart as the caller does, and takes the rest from the origin.
func schemeLike(given, scheme string) string {
	if strings.HasPrefix(given, "ws") {
		return "ws" + strings.TrimPrefix(scheme, "http")
	}
	return scheme
}

// dialled reads what a caller's dial function returned.
func (a *attempt) dialled(err error) *result {
	r := &a.result
	*r = result{attempt: a, err: err}
	var refusal interface{ StatusCode() int }
	switch {
	case err == nil:
		r.seen.status = http.StatusSwitchingProtocols
	case a.call.ctx.Err() != nil:
		r.seen.failure = failedContext
	case errors.As(err, &refusal) && isAnswer(refusal.StatusCode()):
		if r.seen.status = refusal.StatusCode(); r.seen.status < 300 {
			r.seen.failure = failedUpgrade
		}
	case context.Cause(a.ctx) == errSlow:
		if r.seen.failure = failedSlow; errors.Is(err, context.Canceled) { // that was not the caller
			r.err = fmt.Errorf("%w: %v", errSlow, err)
		}
	default:
		r.seen.failure = failedBroken
	}
	return r
}

// isAnswer tells the HTTP statuses that end a handshake without a connection. After a 101 there was one.
func isAnswer(code int) bool { return code >= 200 && code < 1000 }

// DialUntil returns a function that connects with dial, and closes the connection when ctx ends. dial is that of a net.Dialer;
// nil is that of one without settings.
//
// It is for dial functions of Connect whose library leaves the context out of sight once the network connection is there, as
// gorilla/websocket does: a server that says nothing would hold an attempt beyond its limit and a cancel. With
//
//	websocket.Dialer{NetDialContext: failover.DialUntil(ctx, nil)}
//
// it does not, and what a failed attempt has opened is closed. ctx is the context that dial got from Connect, which never ends
// once the attempt has succeeded. The context given to the function returned counts for connecting only.
func DialUntil(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error)) (
	dialUntil func(ctx context.Context, network, address string) (net.Conn, error)) {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(dialing, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
}

// Prepare reads the region list of serverURL with token, ahead of a connection, and makes its first region the first choice of
// the next one to serverURL, which stays in the plan. That is the next Connect, or the next request for an RTC path. A list that
// is fresh is not read again. It is safe for concurrent use; those who wait for one list share one read, which takes 2 s at most.
//
// Only LiveKit Cloud's project hosts and those named by Hosts have a list. On any other host, and where Origins names the regions,
// Prepare returns nil and does nothing. Nor is a server without regions (404) an error, or an empty list: the next connection
// begins at serverURL. So it does, whatever the list says, when failover is off.
//
// The error says that serverURL is not a server URL, that the Transport is closed, or that the list could not be read, now or within
// the last second; if ctx ends first it is ctx's error. It is no *Error and holds no token. Nothing was changed then, and a
// connection can be made all the same.
func (t *Transport) Prepare(ctx context.Context, serverURL, token string) error {
	_, o, err := t.rtcURL(serverURL)
	if err != nil {
		return err
	}
	kind := t.kindOf(o)
	if t.staticPlan(kind) {
		return nil
	}
	h := t.hostState(o, kind)
	now := time.Now()
	if cur, stale := h.list.get(now); cur == nil || stale {
		read := h.list.need(now, func() func(*listRead) { return t.readRegions(h, bearer(token)) })
		if read == nil {
			return fmt.Errorf("failover: the region list of %s could not be read a moment ago", o.host)
		}
		limit := time.NewTimer(listTimeout + drainTime)
		defer limit.Stop()
		select {
		case <-read.done:
		case <-limit.C: // the transport does not look at its context
			return fmt.Errorf("failover: the region list of %s could not be read in time", o.host)
		case <-ctx.Done():
			return ctx.Err()
		}
		if read.err != nil {
			return fmt.Errorf("failover: the region list of %s: %w", o.host, read.err)
		}
	}
	h.prepared.Store(true)
	return nil
}

// ReportRegions takes a region list that the server pushed over a connection to serverURL, as if it had been read now: it takes
// the place of the one there was, even if it is empty, is fresh for 5 minutes, and serves API calls to serverURL as well as
// connections. Entries that could not stand in a list read by this package are skipped, and reported to the Logger. It is safe for
// concurrent use; a read that is on its way already does not replace the list reported.
//
// As with Prepare, a list is of use on LiveKit Cloud's project hosts and those named by Hosts. On any other host, and where Origins
// names the regions, ReportRegions returns nil and no connection or call goes elsewhere for it. The error says that serverURL is
// none, or that the Transport is closed.
func (t *Transport) ReportRegions(serverURL string, regions []Region) error {
	_, o, err := t.rtcURL(serverURL)
	if err != nil {
		return err
	}
	kind := t.kindOf(o)
	if !kind.listsRegions() {
		return nil
	}
	origins, skipped := t.rules.usableOrigins(o, regions)
	if skipped > 0 {
		t.log.Warn("reported regions not used: unreadable, or not trusted with the token", "host", o.host, "entries", skipped)
	}
	now := time.Now()
	t.hostState(o, kind).list.put(&listing{origins: origins, read: now, fresh: now.Add(defaultListAge)})
	return nil
}

// rtcURL reads the server URL of a connection.
func (t *Transport) rtcURL(raw string) (*url.URL, origin, error) {
	if t.background.Err() != nil {
		return nil, origin{}, errClosed
	}
	o, err := parseOrigin(raw)
	if err != nil {
		return nil, origin{}, fmt.Errorf("failover: server URL %q: %w; give one such as \"wss://my-project.livekit.cloud\"",
			Scrub(raw), err)
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	return u, o, err
}

func bearer(token string) http.Header {
	h := http.Header{}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}

// preparedOrigin is where the next connection begins: the first region of a list that Prepare read, else the given URL.
func (h *hostState) preparedOrigin(given origin) origin {
	prepared := h.prepared.Swap(false)
	if cur, _ := h.list.get(time.Now()); prepared && cur != nil && len(cur.origins) > 0 {
		return cur.origins[0]
	}
	return given
}
