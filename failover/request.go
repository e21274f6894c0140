package failover

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// requestFor makes the request of one attempt: the caller's, sent to the attempt's origin. What stays behind is the caller's
// body, and the Cancel channel that http.Client closes beside ending the context.
func (c *call) requestFor(a *attempt, ctx context.Context) *http.Request {
	req := http.Request{Method: c.req.Method, URL: c.req.URL, Host: c.req.Host, Header: c.headerFor(), Body: http.NoBody,
		Proto: c.req.Proto, ProtoMajor: c.req.ProtoMajor, ProtoMinor: c.req.ProtoMinor, Close: c.req.Close}
	if a.origin != c.configured {
		u := *c.req.URL
		u.Scheme, u.Host = a.origin.scheme, a.origin.host
		req.URL, req.Host = &u, ""
	}
	if len(c.body) > 0 {
		a.body.Reset(c.body)
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(&a.body), a.rewind(), int64(len(c.body))
	}
	return req.WithContext(ctx)
}

// timeoutHeader tells a Twirp server how long its answer is of use, in milliseconds.
const timeoutHeader = "X-Twirp-Timeout-Ms"

// timeoutSlack keeps the server's clock from ending a call just before the client's own deadline does.
const timeoutSlack = 250 * time.Millisecond

// farAhead is what a longer time counts as, so that no sum with it overflows.
const farAhead = 365 * 24 * time.Hour

// millis writes a duration as whole milliseconds, at least one.
func millis(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }

// headerFor returns the header of an attempt that begins now: a copy of the caller's, with the names that this package owns
// replaced, in whatever spelling they came.
func (c *call) headerFor() http.Header {
	count := 2
	for _, values := range c.req.Header {
		count += len(values)
	}
	all := make([]string, 0, count) // of all names, to save allocations
	h := make(http.Header, len(c.req.Header)+2)
	set := func(name string, values ...string) {
		from := len(all)
		all = append(all, values...)
		h[name] = all[from:len(all):len(all)]
	}
	for name, values := range c.req.Header {
		switch {
		case strings.EqualFold(name, "Idempotency-Key"), strings.EqualFold(name, "X-Idempotency-Key"):
			// net/http re-sends requests with these names by itself. It looks for this spelling; servers do not care.
			name = strings.ToLower(name)
		case !c.pol.rtc && (strings.EqualFold(name, RequestIDHeader) || strings.EqualFold(name, timeoutHeader)):
			continue
		}
		set(name, values...)
	}
	if !c.pol.rtc {
		set(RequestIDHeader, c.trail.RequestID)
		set(timeoutHeader, millis(min(time.Until(c.deadline), farAhead)+timeoutSlack))
	}
	return h
}
