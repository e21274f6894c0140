package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// agent is the name of the agent that every call dispatches.
const agent = "support"

// runner calls a client and keeps count.
type runner struct {
	job    Job
	client *Client
	rooms  atomic.Int64 // new rooms so far

	mu        sync.Mutex
	calls     int
	failed    int
	errors    map[string]int
	worst     time.Duration
	latencies []time.Duration // of an open loop
}

// counter returns a function that is true n times. Safe for concurrent use.
func counter(n int) func() bool {
	var left atomic.Int64
	left.Store(int64(n))
	return func() bool { return left.Add(-1) >= 0 }
}

// closed calls as long as more is true, from so many callers, each of which waits for its call to end.
func (r *runner) closed(callers int, more func() bool) {
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			var calls int
			var worst time.Duration
			for more() {
				took, err := r.call()
				calls++
				worst = max(worst, took)
				if err != nil {
					r.fail(err)
				}
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.calls += calls
			r.worst = max(r.worst, worst)
		})
	}
	wg.Wait()
}

// open starts a call at each tick, until there were as many as the job says, and waits for all to end.
func (r *runner) open() {
	tick := time.NewTicker(r.job.Every)
	defer tick.Stop()
	var wg sync.WaitGroup
	for range r.job.Calls {
		wg.Go(func() {
			took, err := r.call()
			if err != nil {
				r.fail(err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.calls++
			r.worst = max(r.worst, took)
			r.latencies = append(r.latencies, took)
		})
		<-tick.C
	}
	wg.Wait()
}

// call makes one call and checks its answer.
func (r *runner) call() (time.Duration, error) {
	room := r.job.Site.Room
	if r.job.Sign {
		room = "room-" + strconv.FormatInt(r.rooms.Add(1), 10)
	}
	ctx := context.Background()
	if r.job.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.job.Timeout)
		defer cancel()
	}
	began := time.Now()
	got, err := r.client.Dispatch(ctx, room, agent)
	took := time.Since(began)
	if err == nil && got != room {
		err = fmt.Errorf("the answer is for room %q, not %q", got, room)
	}
	return took, err
}

func (r *runner) fail(err error) {
	const most = 5
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	if r.errors == nil {
		r.errors = make(map[string]int)
	}
	if text := err.Error(); r.errors[text] > 0 || len(r.errors) < most {
		r.errors[text]++
	}
}

func (r *runner) median() time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	slices.Sort(r.latencies)
	return r.latencies[len(r.latencies)/2]
}
