package rttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// trip is one request on its way and what came of it.
type trip struct {
	*probe
	way    way
	site   Site
	ctx    context.Context
	cancel context.CancelFunc
	req    *http.Request
	bodies spies

	came    chan struct{} // closed when the moment has come that the way waits for
	once    sync.Once
	release chan struct{} // closed when the server may answer
	over    chan struct{} // closed at the end: lets go of whatever still waits
	served  atomic.Int64  // requests that the server saw

	resp     *http.Response
	err      error
	text     string // of the answer
	readErr  error
	closeErr error
	panicked any
}

// travel sends requests one way, with each kind of body.
func (p *probe) travel(w way) {
	kinds := w.kinds
	if kinds == nil {
		kinds = everyKind
	}
	for _, k := range kinds {
		c := &trip{probe: p, way: w, came: make(chan struct{}), release: make(chan struct{}), over: make(chan struct{})}
		if !c.make(k) {
			continue
		}
		c.run(k)
		close(c.over)
		c.cancel()
	}
}

// contentType is that of requests and answers: a RoundTripper may want the same for both.
const contentType = "application/protobuf"

// make prepares the request. It returns false if there is none for this Site.
func (c *trip) make(k kind) bool {
	c.site = c.start(c.TB, http.HandlerFunc(c.serve))
	if c.way.needsClose && c.site.Close == nil {
		return false
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.req = newRequest(c.ctx, c.site.URL)
	k.put(c)
	if c.way.before != nil {
		c.way.before(c)
	}
	return true
}

// newRequest is a request without a body. A field that it leaves at zero could be changed without being noticed.
func newRequest(ctx context.Context, at string) *http.Request {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	req := (&http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	req.Header = http.Header{"Content-Type": {contentType}, "User-Agent": {"rttest"}, "X-Two": {"one", "two"}, "x-lower": {"case"},
		"Authorization": {"Bearer nothing"}, "X-Livekit-Request-Id": {"an-id"}, "X-Twirp-Timeout-Ms": {"77"}, "Idempotency-Key": {"key"},
		spare: append(make([]string, 0, 4), "in use")}
	return req
}

// run sends the request and checks what must hold whatever comes of it, then what the way wants.
func (c *trip) run(k kind) {
	before := take(c.req)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.roundTrip()
	}()
	timer := time.NewTimer(c.limit)
	defer timer.Stop()
	select {
	case <-c.came:
		c.unmodified(before, k, "on its way")
		if c.way.meanwhile != nil {
			c.way.meanwhile(c)
		}
		close(c.release)
	case <-done:
	case <-timer.C:
	}
	if !c.soon(done) {
		c.violated(c.way.rule, "with %s, no end in %v", k.name, c.limit)
		return
	}
	if c.panicked != nil {
		c.violated(c.way.rule, "with %s, RoundTrip panics: %v", k.name, c.panicked)
		return
	}
	for _, body := range c.bodies.list() {
		if !c.soon(body.closed) {
			c.violated(ruleClosed, "with %s, it was not, after %v", k.name, c.limit)
		}
	}
	c.unmodified(before, k, "when all was over")
	c.response(k)
	if complaint := c.way.want(c); complaint != "" {
		c.violated(c.way.rule, "with %s, %s", k.name, complaint)
	}
}

// roundTrip sends the request and reads the answer.
func (c *trip) roundTrip() {
	defer func() { c.panicked = recover() }()
	c.resp, c.err = c.site.RoundTripper.RoundTrip(c.req)
	if c.resp == nil || c.resp.Body == nil {
		return
	}
	read, err := io.ReadAll(c.resp.Body)
	c.text, c.readErr = string(read), err
	c.closeErr = errors.Join(c.resp.Body.Close(), c.resp.Body.Close())
}

func (c *trip) unmodified(before *snapshot, k kind, when string) {
	if changed := before.changes(c.req); len(changed) > 0 {
		c.violated(ruleUnmodified, "with %s, %s, it has another %s", k.name, when, strings.Join(changed, ", "))
	}
}

// response checks what came back.
func (c *trip) response(k kind) {
	if (c.resp == nil) == (c.err == nil) {
		c.violated(ruleXor, "with %s, RoundTrip returned %v and %v", k.name, c.resp, c.err)
	}
	if c.resp == nil {
		return
	}
	if r := c.resp.Request; r == nil || r.Method != c.req.Method || fmt.Sprint(r.URL) != fmt.Sprint(c.req.URL) {
		c.violated(ruleRequest, "with %s, it names %v", k.name, r)
	}
	switch {
	case c.resp.Body == nil:
		c.violated(ruleBody, "with %s, there is none", k.name)
	case c.closeErr != nil:
		c.violated(ruleBody, "with %s, closing: %v", k.name, c.closeErr)
	}
}

// come says that the moment is here at which the way does something.
func (c *trip) come() { c.once.Do(func() { close(c.came) }) }

// serve lets the way answer a request.
func (c *trip) serve(w http.ResponseWriter, r *http.Request) {
	c.served.Add(1)
	c.way.serve(c, w, r)
}

// await waits until a channel is closed, or nobody waits for the answer any more.
func (c *trip) await(r *http.Request, done <-chan struct{}) {
	select {
	case <-done:
	case <-r.Context().Done():
	case <-c.over:
	}
}

// outcome is the trip's end in words.
func (c *trip) outcome() string {
	if c.err != nil || c.resp == nil {
		return fmt.Sprintf("RoundTrip returned the error %v", c.err)
	}
	return fmt.Sprintf("the answer was %d %.60q, reading it: %v", c.resp.StatusCode, c.text, c.readErr)
}

// failure is the error of the round trip, or of reading the answer.
func (c *trip) failure() error {
	if c.err != nil {
		return c.err
	}
	return c.readErr
}
