package rttest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// crowd sends requests at the same time that have their header, URL and trailer in common, as shallow copies of a request do. It
// is the race detector that sees who writes to them.
func (p *probe) crowd() {
	const callers, calls = 8, 5
	site := p.start(p.TB, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		reflectTo(w, r, body)
	}))
	common := newRequest(context.Background(), site.URL)
	common.Trailer = http.Header{"X-Trailer": {"at the end"}}
	before := take(common)
	var crowd sync.WaitGroup
	for caller := range callers {
		crowd.Go(func() {
			for call := range calls {
				if complaint := p.one(site.RoundTripper, common, fmt.Sprintf("%d of %d", call, caller)); complaint != "" {
					p.violated(ruleConcurrent, "%s", complaint)
				}
			}
		})
	}
	crowd.Wait()
	if changed := before.changes(common); len(changed) > 0 {
		p.violated(ruleUnmodified, "several at once: it has another %s", strings.Join(changed, ", "))
	}
}

// one sends a request of the crowd, and wants its own answer.
func (p *probe) one(rt http.RoundTripper, common *http.Request, text string) (complaint string) {
	defer func() {
		if v := recover(); v != nil {
			complaint = fmt.Sprint("RoundTrip panics: ", v)
		}
	}()
	req := common.WithContext(context.Background())
	body := newSpy(strings.NewReader(text))
	req.Body, req.ContentLength = body, -1
	resp, err := rt.RoundTrip(req)
	if err != nil || resp == nil {
		return fmt.Sprintf("%v, %v", resp, err)
	}
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.HasSuffix(string(answer), ": "+text) {
		return fmt.Sprintf("%q was answered by %d %q, %v", text, resp.StatusCode, answer, err)
	}
	if !p.soon(body.closed) {
		p.violated(ruleClosed, "several at once: it was not")
	}
	return ""
}
