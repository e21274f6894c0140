package cloudtest

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is one HTTP request as it arrived at a Host, and what became of it.
type Request struct {
	Time   time.Time // when its header had arrived
	Host   string    // the name of the Host that it arrived at
	Region string    // the Host's region; empty for those that are none
	Proto  string    // "HTTP/1.1", "HTTP/2.0"
	TLS    bool

	Method    string      // "POST"
	Authority string      // what the request names as its host; should be Host
	Path      string      // without the query, which may hold a token
	RPC       string      // "AgentDispatchService/CreateDispatch"; empty for paths that are no method
	RequestID string      // X-Livekit-Request-Id
	Token     bool        // a token came, valid or not
	Header    http.Header // without the token
	Body      []byte

	Fault    string // what was done to it: "drop", "after hang"; empty: nothing
	Status   int    // of the answer; 0: none was begun
	Effect   bool   // it changed something: see Effects
	Answered bool   // the answer is out, or the connection gone, and nothing else is on its way on the connection

	forgotten bool // by Forget
}

// Effect is one change that a call brought about. A request that the Cloud recognises as a repeat brings about none, nor does a
// call that only reads or fails.
type Effect struct {
	Time      time.Time
	Host      string
	RPC       string // "AgentDispatchService/CreateDispatch"
	RequestID string
}

// flushLimit is how long the end of an answer is waited for that may never be written: that of a client which gave up just then.
const flushLimit = time.Second

// buffered is answers whose end net/http has put into the buffer of an HTTP/2 connection, from where its next write takes it.
type buffered struct {
	requests []*Request
	limit    *time.Timer
}

// record is what arrived. Safe for concurrent use.
type record struct {
	mu       sync.Mutex
	changed  sync.Cond
	requests []*Request
	effects  []Effect
	running  int                    // handlers
	unsent   map[*served][]*Request // handled, but the connection was not idle since
	buffered map[*served]*buffered  // ended, but perhaps not written yet
	quiet    map[*served]bool       // connections with nothing on their way
	closed   bool
}

func (rec *record) init() {
	rec.changed.L = &rec.mu
	rec.unsent = make(map[*served][]*Request)
	rec.buffered = make(map[*served]*buffered)
	rec.quiet = make(map[*served]bool)
}

// arrive adds a request.
func (rec *record) arrive(q *Request) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.requests = append(rec.requests, q)
	rec.running++
}

// update changes what is known of a request.
func (rec *record) update(change func()) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	change()
}

// handled says that the handler of a request has done what it does.
func (rec *record) handled(q *Request, conn *served) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.running--
	if conn == nil || rec.quiet[conn] || !conn.host.conns.has(conn) { // the client gave up, or the connection is gone
		q.Answered = true
	} else {
		rec.unsent[conn] = append(rec.unsent[conn], q)
	}
	rec.changed.Broadcast()
}

// active says that something is on its way on a connection.
func (rec *record) active(conn *served) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	delete(rec.quiet, conn)
}

// idle says that nothing is on its way on a connection of HTTP/1.1: answers are written before net/http calls it idle.
func (rec *record) idle(conn *served) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.quiet[conn] = true
	rec.answered(rec.unsent[conn])
	delete(rec.unsent, conn)
}

// ended says that no stream is open on a connection of HTTP/2. Of the answers the last frame may be in a buffer still.
func (rec *record) ended(conn *served) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.quiet[conn] = true
	requests := rec.unsent[conn]
	if len(requests) == 0 {
		return
	}
	delete(rec.unsent, conn)
	b := rec.buffered[conn]
	if b == nil {
		b = &buffered{limit: time.AfterFunc(flushLimit, func() { rec.wrote(conn) })}
		rec.buffered[conn] = b
	}
	b.requests = append(b.requests, requests...)
}

// wrote says that the buffer of a connection was written.
func (rec *record) wrote(conn *served) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if b := rec.buffered[conn]; b != nil {
		b.limit.Stop()
		delete(rec.buffered, conn)
		rec.answered(b.requests)
	}
}

// gone says that a connection is closed.
func (rec *record) gone(conn *served) {
	rec.wrote(conn)
	rec.idle(conn)
	rec.active(conn)
}

// answered is called with mu held.
func (rec *record) answered(requests []*Request) {
	for _, q := range requests {
		q.Answered = true
	}
	rec.changed.Broadcast()
}

// effect adds what a request brought about, unless it is forgotten by now.
func (rec *record) effect(q *Request, e Effect) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	q.Effect = true
	if q.forgotten {
		return
	}
	rec.effects = append(rec.effects, e)
}

// close ends every wait, and returns when no handler runs any more.
func (rec *record) close() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.closed = true
	rec.changed.Broadcast()
	for rec.running > 0 {
		rec.changed.Wait()
	}
}

// Requests returns what arrived at all hosts, in the order of arrival.
func (c *Cloud) Requests() []Request { return c.record.list(func(*Request) bool { return true }) }

// Requests returns what arrived at the host, in the order of arrival.
func (h *Host) Requests() []Request {
	return h.cloud.record.list(func(q *Request) bool { return q.Host == h.name })
}

// Effects returns the changes that calls brought about, in the order they happened.
func (c *Cloud) Effects() []Effect {
	c.record.mu.Lock()
	defer c.record.mu.Unlock()
	return slices.Clone(c.record.effects)
}

// Forget empties the record of requests, dials, strays and effects. What is still running is finished unseen. The state of
// rooms and dispatches stays.
func (c *Cloud) Forget() {
	c.record.mu.Lock()
	for _, q := range c.record.requests {
		q.forgotten = true
	}
	c.record.requests, c.record.effects = nil, nil
	c.record.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strays = nil
	for _, h := range c.hosts {
		h.mu.Lock()
		h.dials = nil
		h.mu.Unlock()
	}
}

// list returns copies.
func (rec *record) list(want func(*Request) bool) []Request {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	var list []Request
	for _, q := range rec.requests {
		if want(q) {
			list = append(list, q.copy())
		}
	}
	return list
}

func (q *Request) copy() Request {
	c := *q
	c.Header = q.Header.Clone()
	return c
}

// Await returns when a request for which f is true has been answered, so that a fault set next cannot spoil the answer. It
// returns the context's error if there is none by then, and net/http.ErrServerClosed when the Cloud is closed. f is called once
// for each request that was answered, and must not use the Cloud; nil stands for any request.
func (c *Cloud) Await(ctx context.Context, f func(Request) bool) error {
	rec := &c.record
	stop := context.AfterFunc(ctx, func() {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		rec.changed.Broadcast()
	})
	defer stop()
	asked := make(map[*Request]bool)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for {
		for _, q := range rec.requests {
			if !q.Answered || asked[q] {
				continue
			}
			if asked[q] = true; f == nil || f(q.copy()) {
				return nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case rec.closed:
			return http.ErrServerClosed
		}
		rec.changed.Wait()
	}
}
