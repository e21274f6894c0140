// Package rttest tests that an http.RoundTripper keeps the contract of its interface: what net/http's documentation demands, and
// what its own Transport does and callers have come to rely on.
package rttest

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// The rules. Each violation is reported with one of them.
const (
	ruleUnmodified = "the request is not modified"
	ruleClosed     = "the request's body is closed"
	ruleXor        = "a response or an error, never both or neither"
	ruleRequest    = "the response names its request"
	ruleBody       = "the response has a body, which can be closed twice"
	ruleAnswer     = "request and answer arrive as they were sent, whatever the status"
	ruleContext    = "the context is obeyed"
	ruleUnsendable = "what cannot be sent is an error"
	ruleReadError  = "an error of the request's body surfaces"
	ruleLength     = "a body of another length than stated is an error"
	ruleBroken     = "a broken answer is an error"
	ruleTwice      = "closing the RoundTripper twice is harmless"
	ruleConcurrent = "requests may be made at the same time"
)

// Site is a RoundTripper under test, and a server for its requests.
type Site struct {
	RoundTripper http.RoundTripper
	URL          string       // of what the handler answers
	Dead         string       // to which no connection can be made
	Close        func() error // ends the RoundTripper; nil if it has no end
}

// Start makes a Site whose server answers with the handler, be it on the first attempt or a later one. It is called often, for
// a Site as new each time, and leaves the end of it to the test's Cleanup.
type Start func(t testing.TB, handler http.Handler) Site

// limit is how long Run waits for what must happen soon. It is far more than a busy machine needs.
const limit = 30 * time.Second

// Run tests the RoundTripper that start makes.
func Run(t *testing.T, start Start) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			(&probe{t, start, limit}).travel(w)
		})
	}
	t.Run("at the same time", func(t *testing.T) {
		t.Parallel()
		(&probe{t, start, limit}).crowd()
	})
}

// probe tests one Start and reports to one test.
type probe struct {
	testing.TB
	start Start
	limit time.Duration
}

func (p *probe) violated(rule, format string, args ...any) {
	p.Helper()
	p.Errorf("%s: %s", rule, fmt.Sprintf(format, args...))
}

// soon waits for a channel to be closed.
func (p *probe) soon(done <-chan struct{}) bool {
	timer := time.NewTimer(p.limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
