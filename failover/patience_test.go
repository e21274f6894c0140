package failover_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A slow attempt is overtaken, cut or left alone, as its repeat class says.

var create = failover.Call{Repeat: failover.Keyed, Overtake: true}

// backend does the work of a create once for each request id, as LiveKit Cloud does: a second request with an id that is
// known waits for the first one's result.
type backend struct {
	mu    sync.Mutex
	work  map[string]chan struct{}
	takes time.Duration
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(failover.RequestIDHeader)
	b.mu.Lock()
	if b.work == nil {
		b.work = map[string]chan struct{}{}
	}
	done := b.work[id]
	if done == nil {
		done = make(chan struct{})
		b.work[id] = done
		time.AfterFunc(b.takes, func() { close(done) })
	}
	b.mu.Unlock()
	select {
	case <-done:
		ok(w, r)
	case <-r.Context().Done():
	}
}

func (b *backend) effects() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.work)
}

func TestSlowAnswerIsDelivered(t *testing.T) {
	for _, hosts := range [][]string{{project}, {project, region1}} {
		inWorld(t, func(w *world) {
			b := &backend{takes: 8 * time.Second}
			home := w.serve(project, b.ServeHTTP)
			if len(hosts) > 1 {
				home.setList(regions("60", hosts[1:]...))
				w.serve(region1, b.ServeHTTP)
			}
			r := w.post(within(w, 10*time.Second), w.transport(), project, create)
			if r.status != 200 || r.took != 8*time.Second {
				t.Errorf("%v: %d, %v after %v", hosts, r.status, r.err, r.took)
			}
			if b.effects() != 1 {
				t.Errorf("%v: it took effect %d times", hosts, b.effects())
			}
			var asked int
			for _, s := range w.sites {
				asked += len(s.asked())
			}
			if asked != 2 {
				t.Errorf("%v: %d requests, want 2: the slow one and the one that overtakes it", hosts, asked)
			}
			if r.trail.OutcomeUnknown {
				t.Error("a call that succeeded has an unknown outcome")
			}
		})
	}
}

// When a slow attempt is overtaken.
func TestPatience(t *testing.T) {
	tests := []struct {
		name     string
		call     failover.Call
		deadline time.Duration // 0: none
		second   time.Duration // when the second attempt starts, at the earliest; 0: never
		overlap  bool
	}{
		{"safe", failover.Call{Repeat: failover.Safe}, 10 * time.Second, 5 * time.Second, true},
		{"safe without a deadline", failover.Call{Repeat: failover.Safe}, 0, 5 * time.Second, true},
		{"create, 10 s", create, 10 * time.Second, 5 * time.Second, true},
		{"create, 6 s", create, 6 * time.Second, 5 * time.Second, true},
		{"create, 16 s", create, 16 * time.Second, 8 * time.Second, true},
		{"create, 40 s", create, 40 * time.Second, 10 * time.Second, true},
		{"create without a deadline", create, 0, 10 * time.Second, true},
		{"keyed, 10 s", failover.Call{}, 10 * time.Second, 0, false},
		{"keyed, 15 s", failover.Call{}, 15 * time.Second, 10 * time.Second, false},
		{"keyed without a deadline", failover.Call{}, 0, 10 * time.Second, false},
		{"once, 40 s", failover.Call{Repeat: failover.Once}, 40 * time.Second, 0, false},
		{"once without a deadline", failover.Call{Repeat: failover.Once}, 0, 0, false},
		{"safe, 4.8 s", failover.Call{Repeat: failover.Safe}, 4800 * time.Millisecond, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var left time.Time // when the first request was given up
				home := w.serve(project, func(_ http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					left = time.Now()
				})
				other := w.serve(region1, after(500*time.Millisecond, ok))
				home.setList(regions("60", region1))
				ctx := context.Background()
				if test.deadline > 0 {
					ctx = within(w, test.deadline)
				}
				start := time.Now()
				r := w.post(ctx, w.transport(), project, test.call)
				synctest.Wait()
				if test.second == 0 {
					if n := len(other.asked()); n > 0 || r.err == nil {
						t.Errorf("%d requests went elsewhere, error %v", n, r.err)
					}
					return
				}
				if r.status != 200 || len(other.asked()) != 1 {
					t.Fatalf("%d, %v, %d requests elsewhere", r.status, r.err, len(other.asked()))
				}
				second := other.asked()[0].at
				if got := second.Sub(start); got < test.second || got > test.second+200*time.Millisecond {
					t.Errorf("the second attempt began after %v, want %v and a backoff", got, test.second)
				}
				if overlap := left.After(second); overlap != test.overlap {
					t.Errorf("the slow attempt ended %v after the second began: overlap %t, want %t", left.Sub(second), overlap, test.overlap)
				}
				if end := start.Add(r.took); test.overlap && left != end {
					t.Errorf("the slow attempt was cancelled %v after the answer", left.Sub(end))
				}
				if home.asked()[0].id != other.asked()[0].id {
					t.Error("the attempts have different request ids")
				}
			})
		})
	}
}

// reports collects what OnAttempt tells.
type reports struct {
	mu  sync.Mutex
	all []failover.Attempt
	ctx []context.Context
}

func (r *reports) take(ctx context.Context, a failover.Attempt) {
	r.mu.Lock()
	r.all, r.ctx = append(r.all, a), append(r.ctx, ctx)
	r.mu.Unlock()
}

// attempts returns one line for each report: number, origin, status; sorted.
func (r *reports) attempts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, a := range r.all {
		lines = append(lines, fmt.Sprintf("%d %s %d", a.Number, a.Origin, a.Status))
	}
	slices.Sort(lines)
	return lines
}

// The first conclusive answer wins, whichever attempt it belongs to; what fails meanwhile does not end the call.
func TestFirstConclusiveAnswerWins(t *testing.T) {
	origin := map[string]string{project: "http://" + project, region1: "http://" + region1, region2: "http://" + region2}
	tests := []struct {
		name           string
		home, one, two http.HandlerFunc
		status         int
		from           string
		requests       []int
		unknown        bool
		attempts       []string
	}{
		{"the second", hang, after(time.Second, ok), ok, 200, region1, []int{1, 1, 0}, false,
			[]string{"1 " + origin[project] + " 0", "2 " + origin[region1] + " 200"}},
		{"the slow one", after(6*time.Second, ok), hang, ok, 200, project, []int{1, 1, 0}, false,
			[]string{"1 " + origin[project] + " 200", "2 " + origin[region1] + " 0"}},
		{"the slow one fails later", after(6*time.Second, status(503)), after(2*time.Second, ok), ok, 200, region1, []int{1, 1, 0}, false,
			[]string{"1 " + origin[project] + " 503", "2 " + origin[region1] + " 200"}},
		{"both fail, the third", after(7*time.Second, status(503)), after(time.Second, status(500)), ok, 200, region2, []int{1, 1, 1}, false,
			[]string{"1 " + origin[project] + " 0", "2 " + origin[region1] + " 500", "3 " + origin[region2] + " 200"}},
		{"the second is denied", hang, after(time.Second, status(403)), ok, 403, "", []int{1, 1, 0}, true,
			[]string{"1 " + origin[project] + " 0", "2 " + origin[region1] + " 403"}},
		{"the slow one is not found", after(6*time.Second, status(404)), hang, ok, 404, "", []int{1, 1, 0}, true,
			[]string{"1 " + origin[project] + " 404", "2 " + origin[region1] + " 0"}},
		{"the slow one is pinned elsewhere before it is overtaken", after(5*time.Second, status(451)), after(time.Second, ok), ok, 200, region1, []int{1, 1, 0}, false,
			[]string{"1 " + origin[region1] + " 200", "1 " + origin[project] + " 451"}},
		{"the slow one is pinned elsewhere", after(6*time.Second, status(451)), after(2*time.Second, ok), ok, 200, region1, []int{1, 1, 0}, false,
			[]string{"1 " + origin[project] + " 451", "2 " + origin[region1] + " 200"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				home, one, two := w.serve(project, test.home), w.serve(region1, test.one), w.serve(region2, test.two)
				home.setList(regions("60", region1, region2))
				var seen reports
				rt := w.transport(failover.OnAttempt(seen.take))
				r := w.post(within(w, 10*time.Second), rt, project, create)
				if r.err != nil || r.status != test.status || r.status == 200 && r.body != "from "+test.from {
					t.Errorf("got %d %q, %v", r.status, r.body, r.err)
				}
				if n := requests(home, one, two); !slices.Equal(n, test.requests) {
					t.Errorf("requests %v, want %v", n, test.requests)
				}
				if r.trail.OutcomeUnknown != test.unknown {
					t.Errorf("outcome unknown: %t", r.trail.OutcomeUnknown)
				}
				synctest.Wait()
				w.idle()
				if got := seen.attempts(); !slices.Equal(got, test.attempts) {
					t.Errorf("OnAttempt saw\n%q, want\n%q", got, test.attempts)
				}
				var trail []int
				for _, a := range r.trail.Attempts {
					trail = append(trail, a.Number)
				}
				if want := len(test.attempts); len(trail) != want || !slices.IsSorted(trail) {
					t.Errorf("the trail has attempts %v, want 1 to %d", trail, want)
				}
			})
		})
	}
}

// A Cloud API host has one origin: what it swallows is asked of it again, on another connection, and it has no region list.
func TestCloudAPIHost(t *testing.T) {
	for name, call := range classes {
		inWorld(t, func(w *world) {
			s := w.serve(cloud, first(hang, ok))
			r := w.post(within(w, 10*time.Second), w.transport(), cloud, call)
			switch name {
			case "safe", "overtaken":
				asked := s.asked()
				if r.status != 200 || len(asked) != 2 {
					t.Fatalf("%s: %d, %v, %d requests", name, r.status, r.err, len(asked))
				}
				if asked[0].from == asked[1].from {
					t.Errorf("%s: both requests went over one connection", name)
				}
				if asked[0].id != asked[1].id || asked[0].body != asked[1].body {
					t.Errorf("%s: the requests differ", name)
				}
			default:
				if r.err == nil || len(s.asked()) != 1 {
					t.Errorf("%s: %d, %d requests", name, r.status, len(s.asked()))
				}
			}
			if n := len(s.listed()); n > 0 {
				t.Errorf("%s: a Cloud API host was asked for regions %d times", name, n)
			}
		})
	}
}

// A lost request is made again when its patience is over, which depends on the call's deadline. 0: none at all.
func TestWhenALostRequestIsMadeAgain(t *testing.T) {
	for name, patience := range map[string]map[time.Duration]time.Duration{ // by deadline
		"safe":      {6 * time.Second: 5 * time.Second, 10 * time.Second: 5 * time.Second, 30 * time.Second: 5 * time.Second, 0: 5 * time.Second},
		"overtaken": {6 * time.Second: 5 * time.Second, 10 * time.Second: 5 * time.Second, 16 * time.Second: 8 * time.Second, 30 * time.Second: 10 * time.Second, 0: 10 * time.Second},
		"keyed":     {12 * time.Second: 10 * time.Second, 30 * time.Second: 10 * time.Second, 0: 10 * time.Second},
	} {
		for deadline, want := range patience {
			inWorld(t, func(w *world) {
				s := w.serve(cloud, first(hang, ok))
				ctx := context.Background()
				if deadline > 0 {
					ctx = within(w, deadline)
				}
				r := w.post(ctx, w.transport(), cloud, classes[name])
				asked := s.asked()
				if r.status != 200 || len(asked) != 2 {
					t.Fatalf("%s within %v: %d, %v, %d requests", name, deadline, r.status, r.err, len(asked))
				}
				if waited := asked[1].at.Sub(asked[0].at); waited < want || waited > want+200*time.Millisecond {
					t.Errorf("%s within %v: made again after %v, want %v and a wait of at most 200 ms", name, deadline, waited, want)
				}
			})
		}
	}
}

// A call needs 5 s for more than one attempt; 4.9 s count, since a context made with 5 s has less by the time it arrives.
func TestShortCallGetsOneAttempt(t *testing.T) {
	for left, want := range map[time.Duration]int{time.Second: 1, 4899 * time.Millisecond: 1, 4900 * time.Millisecond: 3, 5 * time.Second: 3} {
		for _, host := range []string{project, cloud} {
			inWorld(t, func(w *world) {
				s := w.serve(host, status(503))
				r := w.post(within(w, left), w.transport(), host, failover.Call{})
				if n := len(s.asked()); n != want || r.status != 503 {
					t.Errorf("%s with %v: %d requests, want %d; %d, %v", host, left, n, want, r.status, r.err)
				}
			})
		}
	}
}

// An answer that comes slowly but whole is no failure; one that breaks off is.
func TestAnswerIsReadWhole(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, first(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", protobuf)
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half of it")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, ok))
		r := w.post(context.Background(), w.transport(), project, failover.Call{})
		if r.status != 200 || r.body != "from "+project || len(home.asked()) != 2 {
			t.Errorf("%d %q, %v, %d requests", r.status, r.body, r.err, len(home.asked()))
		}
	})
}
