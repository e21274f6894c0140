package failover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Connect drives dial until one region takes the connection. It serves any WebSocket library: dial gets a server URL in the
// scheme of serverURL (ws stays ws), with its path, adds what the library wants, and connects.
//
// dial is called up to ten times, one call after the other, on the goroutine of Connect: for serverURL first, then for each
// region once, in the order of the server's list. It gets a context that ends after 10 s or with ctx. Once dial has returned
// nil that context is never cancelled, so the connection may hold on to it. dial must return when its context ends.
//
// An error of dial that has a method StatusCode() int, as *StatusError has, stands for that HTTP status. 403 and 451 mean that
// this project may not use the region; they, 408, 5xx and an error without a status lead to the next region. 400, 401, 404,
// 429 and any other status end it. Connect returns nil after dial did, else an *Error with every attempt; errors.As finds
// dial's own error in it.
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
	kind := t.rules.kind(hostName(o.host))
	c := &call{t: t, caller: ctx, ctx: ctx, info: info, kind: kind, home: o, host: t.hostState(o, kind),
		pol: rtcPolicy(kind, t.off || info.Off), header: bearer(token), inline: true}
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
	r := &result{attempt: a, err: err}
	var refusal interface{ StatusCode() int }
	switch {
	case err == nil:
		r.seen.status = http.StatusSwitchingProtocols
	case a.call.ctx.Err() != nil:
		r.seen.failure = failedContext
	case errors.As(err, &refusal):
		r.seen.status = refusal.StatusCode()
	case context.Cause(a.ctx) == errSlow:
		r.seen.failure = failedSlow
	default:
		r.seen.failure = failedBroken
	}
	return r
}

// Prepare reads the region list of serverURL with token, ahead of a Connect, and makes its first region the first choice of
// the next Connect to serverURL, which stays in the plan. It returns an error if the list cannot be read; a server without
// regions, or a host that has none, is no error.
func (t *Transport) Prepare(ctx context.Context, serverURL, token string) error {
	_, o, err := t.rtcURL(serverURL)
	if err != nil {
		return err
	}
	kind := t.rules.kind(hostName(o.host))
	if !kind.listsRegions() || kind == optedHost && len(t.fixed) > 0 {
		return nil
	}
	h := t.hostState(o, kind)
	now := time.Now()
	if cur, stale := h.list.get(now); cur == nil || stale {
		read := h.list.need(now, t.readRegions(h, bearer(token)))
		if read == nil {
			return fmt.Errorf("failover: the region list of %s could not be read a moment ago", o.host)
		}
		select {
		case <-read.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if read.err != nil {
			return fmt.Errorf("failover: the region list of %s: %w", o.host, scrubError(read.err))
		}
	}
	h.setPrepared()
	return nil
}

// ReportRegions takes a region list that the server pushed over a connection to serverURL. Entries that could not stand in a
// list read by this package are skipped. It counts as read now, and is fresh for 5 minutes.
func (t *Transport) ReportRegions(serverURL string, regions []Region) error {
	_, o, err := t.rtcURL(serverURL)
	if err != nil {
		return err
	}
	kind := t.rules.kind(hostName(o.host))
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
		return nil, origin{}, fmt.Errorf("failover: server URL %q: %w; give one such as \"wss://my-project.livekit.cloud\"", Scrub(raw), err)
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

func (h *hostState) setPrepared() {
	h.mu.Lock()
	h.prepared = true
	h.mu.Unlock()
}

// preparedOrigin is where the next connection begins: the first region of a list that Prepare read, else the given URL.
func (h *hostState) preparedOrigin(given origin) origin {
	h.mu.Lock()
	prepared := h.prepared
	h.prepared = false
	h.mu.Unlock()
	if cur, _ := h.list.get(time.Now()); prepared && cur != nil && len(cur.origins) > 0 {
		return cur.origins[0]
	}
	return given
}
