package failover

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	regionsPath  = "/settings/regions"
	listTimeout  = 2 * time.Second
	failedMemory = time.Second // a read that failed is not tried again before
	aheadPause   = time.Minute // between reads that no failing call waits for
)

// listing is a region list as it was read.
type listing struct {
	origins []origin
	seq     uint64 // of the read that brought it
	read    time.Time
	fresh   time.Time // until then
}

// listRead is one read of a region list, for all who wait for it. Its results may be used once done is closed.
type listRead struct {
	seq     uint64
	begun   time.Time
	done    chan struct{}
	listing *listing
	err     error
}

// regionList is the region list of one configured origin. Safe for concurrent use.
type regionList struct {
	seq atomic.Uint64 // of the newest read that was begun

	mu     sync.Mutex
	cur    *listing  // nil: none
	last   *listRead // the newest read, running or done
	before *listRead // the one before it
	wrong  uint64    // what reads up to this one brought is not to be used, since a 451 said so
	failed time.Time // when the newest read failed, if it did
	ahead  time.Time // no read ahead of need before
}

// get returns a list that can be used now: a fresh one, or a stale one of up to an hour. stale: it wants a read behind.
func (l *regionList) get(now time.Time) (cur *listing, stale bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == nil || !now.Before(l.cur.fresh) && now.Sub(l.cur.read) > maxStaleListAge {
		return nil, false
	}
	return l.cur, !now.Before(l.cur.fresh)
}

// put makes a list that was pushed or read the current one.
func (l *regionList) put(cur *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cur.seq == 0 {
		cur.seq = l.seq.Add(1)
	}
	if cur.seq > l.wrong && (l.cur == nil || l.cur.seq <= cur.seq) {
		l.cur = cur
	}
}

// need returns the read that a failing call waits for: the running one, else a new one; nil if one has just failed. newRead is called
// where one begins, as in what follows.
func (l *regionList) need(now time.Time, newRead func() func(*listRead)) *listRead {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readSince(0, now, newRead)
}

// needNewer is need after a 451, which says that the list is wrong: what was read by a read that began before the answered
// attempt did, in state seq, is dropped.
func (l *regionList) needNewer(seq uint64, now time.Time, newRead func() func(*listRead)) *listRead {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = max(l.wrong, seq)
	if l.cur != nil && l.cur.seq <= seq {
		l.cur = nil
	}
	if l.cur != nil && l.last != nil && l.last.listing == l.cur {
		return l.last // read since by another call
	}
	return l.readSince(seq, now, newRead)
}

// readSince is called with mu held.
func (l *regionList) readSince(seq uint64, now time.Time, newRead func() func(*listRead)) *listRead {
	if l.last != nil {
		switch running := l.last.running(now); {
		case running && (l.last.seq > seq || l.before != nil && l.before.running(now)):
			return l.last // a second one beside it, not a third
		case !running && isDone(l.last.done) && l.last.err != nil && now.Sub(l.failed) < failedMemory:
			return nil
		}
	}
	return l.begin(now, newRead)
}

// readAhead begins a read that nobody waits for, if the list is missing or stale and the last read is long enough ago.
func (l *regionList) readAhead(now time.Time, newRead func() func(*listRead)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.ahead) || l.cur != nil && now.Before(l.cur.fresh) || l.last != nil && l.last.running(now) {
		return
	}
	l.begin(now, newRead)
}

// running reports whether a read may still come to something. A transport that does not look at its context may hold one for good.
func (r *listRead) running(now time.Time) bool {
	return !isDone(r.done) && now.Sub(r.begun) <= listTimeout+drainTime
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// begin is called with mu held.
func (l *regionList) begin(now time.Time, newRead func() func(*listRead)) *listRead {
	read := &listRead{seq: l.seq.Add(1), begun: now, done: make(chan struct{})}
	l.before, l.last, l.ahead = l.last, read, now.Add(aheadPause)
	go newRead()(read)
	return read
}

// finish records what a read came to.
func (l *regionList) finish(read *listRead, got *listing, err error) {
	if err == nil {
		got.seq = read.seq
		l.put(got)
	}
	l.mu.Lock()
	read.listing, read.err = got, err
	if err != nil && l.last == read {
		l.failed = time.Now()
	}
	l.mu.Unlock()
	close(read.done)
}

// newRead reads the list of the call's origin. The headers are copied when it is called, which is on the caller's goroutine.
func (c *call) newRead() func(*listRead) { return c.t.readRegions(c.host, c.authHeader()) }

// authHeader is the header of the call for a read of the region list. A WebSocket client may carry its token in the URL.
func (c *call) authHeader() http.Header {
	if c.req == nil {
		return c.header
	}
	if c.req.Header.Get("Authorization") == "" {
		if token := c.req.URL.Query().Get("access_token"); token != "" && c.pol.rtc {
			h := c.req.Header.Clone()
			h.Set("Authorization", "Bearer "+token)
			return h
		}
	}
	return c.req.Header
}

// readRegions reads the region list of h, detached from the call whose headers it borrows.
func (t *Transport) readRegions(h *hostState, header http.Header) func(*listRead) {
	header = listHeader(header)
	return func(read *listRead) {
		ctx, cancel := context.WithTimeout(t.background, listTimeout)
		defer cancel()
		var got *listing
		err := errEnded
		defer func() { // also if the user's transport ends the goroutine: else no other read would ever begin
			h.list.finish(read, got, err)
			if err != nil {
				t.log.Debug("region list not read", "host", h.origin.host, "error", textOf(err))
			}
		}()
		got, err = t.fetchRegions(ctx, h, header)
		err = scrubError(err, tokenIn(header))
	}
}

func (t *Transport) fetchRegions(ctx context.Context, h *hostState, header http.Header) (*listing, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.origin.String()+regionsPath, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	via := t.carriers.of(h.origin)
	defer via.release()
	resp, err := roundTrip(via.rt, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	now := time.Now()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxListBytes)) // of any answer, so that the connection can be kept
	switch {
	case resp.StatusCode == http.StatusNotFound: // a server without regions, such as a self-hosted one
		return &listing{read: now, fresh: now.Add(defaultListAge)}, nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the region list was answered with %s", statusReason(resp.StatusCode))
	case err != nil:
		return nil, err
	}
	regions, err := parseRegions(body)
	if err != nil {
		return nil, err
	}
	origins, skipped := t.rules.usableOrigins(h.origin, regions)
	if skipped > 0 {
		t.log.Warn("region list entries not used: unreadable, or not trusted with the token", "host", h.origin.host, "entries", skipped)
	}
	return &listing{origins: origins, read: now, fresh: now.Add(listAge(resp.Header))}, nil
}

// listHeader is what of a call's headers goes with a read of the region list: all but those that speak of the call's body,
// its answer, its deadline or its connection.
func listHeader(header http.Header) http.Header {
	h := make(http.Header, len(header))
	for name, values := range header {
		switch canonical := http.CanonicalHeaderKey(name); {
		case strings.HasPrefix(canonical, "Content-"), strings.HasPrefix(canonical, "Sec-Websocket-"):
		case canonical == "Accept", canonical == "Accept-Encoding", canonical == "Transfer-Encoding", canonical == "Trailer",
			canonical == "Connection", canonical == "Upgrade", canonical == "Expect", canonical == "Te",
			canonical == RequestIDHeader, canonical == timeoutHeader, canonical == "Idempotency-Key", canonical == "X-Idempotency-Key":
		default:
			h[name] = slices.Clone(values)
		}
	}
	return h
}
