package failover

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A simulation of many processes that use LiveKit Cloud when their home region dies. Each has a Transport of its own, over a
// RoundTripper that answers for the regions without a network; in a synctest bubble seconds of theirs cost no waiting.
//
// What a run leaves out is left out around the Transport, which has no switch for it. Without jitter, a repeat is held back until
// the whole width of its backoff has passed. Without cool-down or budget, what the Transport remembers of its host is cleared
// before each call.

// fleet is the processes, and what there is to serve them.
type fleet struct {
	clients  int
	rate     int // calls a second of one client
	capacity int // requests a second that each of two other regions serves; the rest it answers with 503
	lasts    time.Duration
}

// without is what a run leaves out.
type without struct{ jitter, coolDown, budget bool }

const (
	simHome = "proj.livekit.cloud"
	simOne  = "one.livekit.cloud"
	simTwo  = "two.livekit.cloud"
	simList = `{"regions":[{"url":"https://` + simHome + `"},{"url":"https://` + simOne + `"},{"url":"https://` + simTwo + `"}]}`

	simStall  = 1 * time.Second        // when the home region stops answering
	simBreak  = 2 * time.Second        // when its connections break; from then on its dials are refused
	simSlot   = 10 * time.Millisecond  // the peak is that of the busiest slot
	simServed = 100 * time.Millisecond // the time over which the capacity counts
)

// simulation is one run. What is counted begins when the home region stops answering.
type simulation struct {
	fleet
	without
	begin time.Time
	dead  chan struct{} // closed when the connections to the home region break
	over  chan struct{} // closed when all calls are over

	mu     sync.Mutex
	left   int              // calls that are not over
	others []int            // requests to the other regions, by simSlot
	served map[string][]int // of these, by region and simServed
	home   int              // requests and dials to the home region
	calls  int
	failed int // calls
}

// simulate runs a fleet, inside a bubble.
func simulate(f fleet, w without) *simulation {
	end := f.lasts + time.Minute // of a call that began last
	s := &simulation{fleet: f, without: w, begin: time.Now(), dead: make(chan struct{}), over: make(chan struct{}),
		left: f.clients * f.rate * int(f.lasts/time.Second), others: make([]int, end/simSlot), served: map[string][]int{}}
	for _, region := range []string{simOne, simTwo} {
		s.served[region] = make([]int, end/simServed)
	}
	time.AfterFunc(simBreak, func() { close(s.dead) })
	random := rand.New(rand.NewPCG(1, 2))
	every := time.Second / time.Duration(f.rate)
	for range f.clients {
		go s.client(time.Duration(random.Int64N(int64(every))), every)
	}
	<-s.over
	return s
}

// client is one process. It calls at its own pace, whatever comes of it.
func (s *simulation) client(phase, every time.Duration) {
	t, err := New(simulated{s})
	if err != nil {
		panic(err)
	}
	<-time.After(phase)
	next := time.NewTicker(every)
	defer next.Stop()
	for i := range s.rate * int(s.lasts/time.Second) {
		if i > 0 {
			<-next.C
		}
		s.forget(t.hostState(origin{"https", simHome}, projectHost))
		go s.call(t)
	}
}

func (s *simulation) forget(h *hostState) {
	if s.without.coolDown {
		h.health.mu.Lock()
		h.health.reset()
		h.health.mu.Unlock()
	}
	if s.without.budget {
		h.budget.mu.Lock()
		h.budget.spent = 0
		h.budget.mu.Unlock()
	}
}

// simulatedCall is what the regions note of a call. Its attempts come one after the other.
type simulatedCall struct {
	attempts int
	failed   time.Time // the newest of them
}

type simulatedKey struct{}

// simulatedRequest is every call's: a Transport changes no request.
var simulatedRequest = &http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/protobuf"}},
	URL: &url.URL{Scheme: "https", Host: simHome, Path: "/twirp/livekit.RoomService/ListRooms"}}

func (s *simulation) call(t *Transport) {
	counts := time.Since(s.begin) >= simStall
	resp, err := t.RoundTrip(simulatedRequest.WithContext(context.WithValue(context.Background(), simulatedKey{}, &simulatedCall{})))
	s.mu.Lock()
	defer s.mu.Unlock()
	if counts {
		s.calls++
	}
	if counts && (err != nil || resp.StatusCode != http.StatusOK) {
		s.failed++
	}
	if s.left--; s.left == 0 {
		close(s.over)
	}
}

// simulated answers for all regions.
type simulated struct{ *simulation }

var errSimulated = errors.New("the connection failed")

func (s simulated) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == regionsPath {
		return simulatedAnswer(r, http.StatusOK, simList), nil
	}
	call := r.Context().Value(simulatedKey{}).(*simulatedCall)
	if call.attempts++; call.attempts > 1 && s.without.jitter {
		<-time.After(time.Until(call.failed.Add(backoff(call.attempts-1, 1))))
	}
	resp, err := s.region(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		call.failed = time.Now()
	}
	return resp, err
}

// region answers, or fails, as the region of a request does at this time.
func (s simulated) region(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	now := time.Since(s.begin)
	trace.GetConn(r.URL.Host)
	if r.URL.Host == simHome && now >= simBreak {
		s.atHome()
		return nil, errSimulated
	}
	trace.GotConn(httptrace.GotConnInfo{Reused: true})
	switch {
	case r.URL.Host != simHome:
		return simulatedAnswer(r, s.arrive(r.URL.Host, now), "x"), nil
	case now < simStall:
		return simulatedAnswer(r, http.StatusOK, "x"), nil
	}
	s.atHome()
	select {
	case <-s.dead:
	case <-r.Context().Done():
	}
	return nil, errSimulated
}

func (s *simulation) atHome() {
	s.mu.Lock()
	s.home++
	s.mu.Unlock()
}

// arrive counts a request to another region, and returns its status.
func (s *simulation) arrive(region string, now time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others[now/simSlot]++
	served := &s.served[region][now/simServed]
	if *served >= s.capacity*int(simServed)/int(time.Second) {
		return http.StatusServiceUnavailable
	}
	*served++
	return http.StatusOK
}

func simulatedAnswer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {r.Header.Get("Content-Type")}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}
}

// peak is the greatest load on the other regions, in requests a second.
func (s *simulation) peak() int {
	most := 0
	for _, n := range s.others {
		most = max(most, n)
	}
	return most * int(time.Second/simSlot)
}

// total is the number of requests to the other regions until the end.
func (s *simulation) total() int { return s.between(0, s.lasts) }

// last is the load on the other regions in the last second.
func (s *simulation) last() int { return s.between(s.lasts-time.Second, s.lasts) }

func (s *simulation) between(from, to time.Duration) (n int) {
	for _, k := range s.others[from/simSlot : to/simSlot] {
		n += k
	}
	return n
}
