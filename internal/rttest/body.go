package rttest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// text is what requests say, unless they are there to go wrong.
const text = "what is asked"

var errBody = errors.New("the body cannot be read")

// spy is a request's body that knows whether it was closed.
type spy struct {
	io.Reader
	closed chan struct{}
	once   sync.Once
}

func newSpy(r io.Reader) *spy { return &spy{Reader: r, closed: make(chan struct{})} }

// Close may be called more than once, as by net/http's own Transport.
func (s *spy) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// spies are all bodies of one request.
type spies struct {
	mu  sync.Mutex
	all []*spy
}

func (s *spies) open(r io.Reader) *spy {
	body := newSpy(r)
	s.mu.Lock()
	s.all = append(s.all, body)
	s.mu.Unlock()
	return body
}

// list returns those that were given out until now.
func (s *spies) list() []*spy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*spy(nil), s.all...)
}

// kind is how a request carries its body.
type kind struct {
	name string
	put  func(c *trip)
}

var (
	sized = kind{"a body of stated length that can be had again", func(c *trip) {
		c.req.Body = c.bodies.open(strings.NewReader(text))
		c.req.ContentLength = int64(len(text))
		c.req.GetBody = func() (io.ReadCloser, error) { return c.bodies.open(strings.NewReader(text)), nil }
	}}
	streamed = kind{"a body of unknown length, with a trailer", func(c *trip) {
		c.req.Body = c.bodies.open(strings.NewReader(text))
		c.req.ContentLength = -1
		c.req.Trailer = http.Header{"X-Trailer": {"at the end"}}
	}}
	empty = kind{"no body", func(*trip) {}}

	failing = kind{"a body that fails", func(c *trip) {
		c.req.Body = c.bodies.open(io.MultiReader(strings.NewReader(text), broken{}))
		c.req.ContentLength = int64(len(text)) + 1
	}}
	failingAtOnce = kind{"a body of unknown length that fails at once", func(c *trip) {
		c.req.Body = c.bodies.open(broken{})
		c.req.ContentLength = -1
	}}
	tooShort = kind{"a body shorter than stated", func(c *trip) {
		c.req.Body = c.bodies.open(strings.NewReader(text))
		c.req.ContentLength = int64(len(text)) + 7
	}}
	tooLong = kind{"a body longer than stated", func(c *trip) {
		c.req.Body = c.bodies.open(strings.NewReader(text))
		c.req.ContentLength = int64(len(text)) - 7
	}}
	endless = kind{"a body that never ends", func(c *trip) {
		body := c.bodies.open(nil)
		body.Reader = io.MultiReader(strings.NewReader(text), &drip{c, body})
		c.req.Body = body
		c.req.ContentLength = -1
	}}
)

var everyKind = []kind{sized, streamed, empty}

// broken fails to be read.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBody }

// drip is a body that comes bit by bit, for as long as somebody reads it.
type drip struct {
	c    *trip
	body *spy
}

func (d *drip) Read(p []byte) (int, error) {
	d.c.come()
	tick := time.NewTimer(time.Millisecond)
	defer tick.Stop()
	select {
	case <-tick.C:
		return min(len(p), 512), nil
	case <-d.body.closed:
	case <-d.c.over:
	}
	return 0, io.ErrClosedPipe
}
