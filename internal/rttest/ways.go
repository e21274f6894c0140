package rttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// way is one of the ways that a request can go.
type way struct {
	name       string
	rule       string // that this way is about
	kinds      []kind // of bodies; nil: every kind that does not go wrong
	needsClose bool
	before     func(c *trip) // spoils the request, or what it is sent through
	serve      func(c *trip, w http.ResponseWriter, r *http.Request)
	meanwhile  func(c *trip) // once serve, or the body, says that the moment has come
	want       func(c *trip) (complaint string)
}

var ways = []way{
	{name: "answered", rule: ruleAnswer, serve: echo, want: wantEcho},
	{name: "answered 204", rule: ruleAnswer, serve: status(204), want: wantStatus(204, "")},
	{name: "answered 404", rule: ruleAnswer, serve: status(404), want: wantStatus(404, "no: 404")},
	{name: "answered 500", rule: ruleAnswer, serve: status(500), want: wantStatus(500, "no: 500")},

	{name: "answer broken off", rule: ruleBroken, serve: breakOff, want: wantFailure},
	{name: "connection closed", rule: ruleBroken, serve: func(*trip, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: wantError},

	{name: "nobody there", rule: ruleUnsendable, serve: echo, want: wantUnsent,
		before: func(c *trip) { c.req.URL, c.req.Host = newRequest(c.ctx, c.site.Dead).URL, "" }},
	{name: "closed", rule: ruleUnsendable, serve: echo, want: wantUnsent, needsClose: true,
		before: func(c *trip) {
			if err := errors.Join(c.site.Close(), c.site.Close()); err != nil {
				c.violated(ruleTwice, "%v", err)
			}
		}},
	{name: "no URL", rule: ruleUnsendable, serve: echo, want: wantUnsent, before: func(c *trip) { c.req.URL = nil }},
	{name: "no header", rule: ruleUnsendable, serve: echo, want: wantUnsent, before: func(c *trip) { c.req.Header = nil }},
	{name: "no host", rule: ruleUnsendable, serve: echo, want: wantUnsent,
		before: func(c *trip) { c.req.URL, c.req.Host = &url.URL{Scheme: c.req.URL.Scheme, Path: c.req.URL.Path}, "" }},
	{name: "another scheme", rule: ruleUnsendable, serve: echo, want: wantUnsent,
		before: func(c *trip) { c.req.URL.Scheme = "gopher" }},
	{name: "an impossible method", rule: ruleUnsendable, serve: echo, want: wantUnsent,
		before: func(c *trip) { c.req.Method = "GET IT" }},
	{name: "an impossible header", rule: ruleUnsendable, serve: echo, want: wantUnsent,
		before: func(c *trip) { c.req.Header["X-Two"] = []string{"one\r\nX-Three: smuggled"} }},
	{name: "an impossible header name", rule: ruleUnsendable, serve: echo, want: wantUnsent,
		before: func(c *trip) { c.req.Header["X Two"] = []string{"one"} }},

	{name: "cancelled before", rule: ruleContext, serve: echo, want: wantEnded(context.Canceled, 0), before: func(c *trip) { c.cancel() }},
	{name: "too late before", rule: ruleContext, serve: echo, want: wantEnded(context.DeadlineExceeded, 0),
		before: func(c *trip) {
			ctx, cancel := context.WithDeadline(c.ctx, time.Now().Add(-time.Second))
			defer cancel()
			c.req = c.req.WithContext(ctx)
		}},
	{name: "cancelled while sending", rule: ruleContext, serve: swallow, want: wantEnded(context.Canceled, -1),
		kinds: []kind{endless}, meanwhile: func(c *trip) { c.cancel() }},
	{name: "cancelled while waiting", rule: ruleContext, serve: hang, want: wantEnded(context.Canceled, -1),
		meanwhile: func(c *trip) { c.cancel() }},
	{name: "too late while waiting", rule: ruleContext, serve: hang, want: wantEnded(context.DeadlineExceeded, -1),
		before: func(c *trip) { c.req = c.req.WithContext(late{context.Background(), c.release}) }},
	{name: "cancelled while reading", rule: ruleContext, serve: stall, want: wantEnded(context.Canceled, -1),
		meanwhile: func(c *trip) { c.cancel() }},

	{name: "unreadable", rule: ruleReadError, kinds: []kind{failing, failingAtOnce}, serve: swallow,
		want: func(c *trip) string { return c.unless(c.resp == nil && errors.Is(c.err, errBody)) }},
	{name: "of another length", rule: ruleLength, kinds: []kind{tooShort, tooLong}, serve: swallow, want: wantError},
}

// Servers.

// echo answers with the request.
func echo(c *trip, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	c.come()
	c.await(r, c.release) // in the meantime the request is looked at
	reflectTo(w, r, body)
}

func reflectTo(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	fmt.Fprintf(w, "%s %s %q %q: %s", r.Method, r.URL.RequestURI(), r.Header["X-Two"], r.Header["X-Lower"], body)
}

// status answers before it reads.
func status(code int) func(*trip, http.ResponseWriter, *http.Request) {
	return func(_ *trip, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		if code != http.StatusNoContent {
			fmt.Fprintf(w, "no: %d", code)
		}
	}
}

// begin sends half of an answer.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(2*len(text)))
	io.WriteString(w, text)
	http.NewResponseController(w).Flush()
}

func breakOff(_ *trip, w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	begin(w)
	panic(http.ErrAbortHandler)
}

// hang answers nothing.
func hang(c *trip, w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	c.come()
	c.await(r, nil)
	panic(http.ErrAbortHandler)
}

// stall begins an answer and does not go on.
func stall(c *trip, w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	begin(w)
	c.come()
	c.await(r, nil)
	panic(http.ErrAbortHandler)
}

// swallow reads a request that is not to come whole. To one that does come whole it answers when its client has had the time to
// see what is wrong with it.
func swallow(c *trip, w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	timer := time.NewTimer(c.limit / 2)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-c.over:
	}
	w.Header().Set("Content-Type", contentType)
}

// late is a context whose deadline passes when a channel is closed. It does not tell when that will be: who has a plan for the
// time left would make another one for a little.
type late struct {
	context.Context
	passed <-chan struct{}
}

func (l late) Done() <-chan struct{} { return l.passed }

func (l late) Err() error {
	select {
	case <-l.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Wants. Each returns what is wrong, or nothing.

func (c *trip) unless(ok bool) string {
	if ok {
		return ""
	}
	return c.outcome()
}

func wantEcho(c *trip) string {
	body := text
	if c.req.Body == nil {
		body = ""
	}
	lower := "x-lower" // sent as it is, though not in http's own spelling
	want := fmt.Sprintf("%s %s %q %q: %s", c.req.Method, c.req.URL.RequestURI(), c.req.Header["X-Two"], c.req.Header[lower], body)
	return c.unless(c.resp != nil && c.resp.StatusCode == 200 && c.resp.Header.Get("Content-Type") == contentType &&
		c.text == want && c.readErr == nil)
}

func wantStatus(code int, text string) func(*trip) string {
	return func(c *trip) string {
		return c.unless(c.resp != nil && c.resp.StatusCode == code && c.text == text && c.readErr == nil)
	}
}

// wantFailure: an error of either the round trip or the reading.
func wantFailure(c *trip) string { return c.unless(c.failure() != nil) }

func wantError(c *trip) string { return c.unless(c.err != nil) }

// wantUnsent: an error, and the server saw nothing.
func wantUnsent(c *trip) string {
	if n := c.served.Load(); n > 0 {
		return fmt.Sprintf("the server saw %d requests", n)
	}
	return wantError(c)
}

// wantEnded: the context's error, and no more requests than most, if that is not negative.
func wantEnded(err error, most int64) func(*trip) string {
	return func(c *trip) string {
		if n := c.served.Load(); most >= 0 && n > most {
			return fmt.Sprintf("the server saw %d requests", n)
		}
		return c.unless(errors.Is(c.failure(), err))
	}
}
