package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
	"github.com/lkrpc/lkrpc/testdata/peers/bench/cloud"
)

// scenario is something that breaks after the warm-up, and the calls that are made then.
type scenario struct {
	name    string
	breaks  cloud.Command
	calls   int
	every   time.Duration
	timeout time.Duration
}

var all = []int{0, 1, 2}

var scenarios = []scenario{
	{"home region answers 503", cloud.Command{Break: all[:1], Fault: cloud.Unavailable}, 200, 10 * time.Millisecond, callTimeout},
	{"home region dead: connections reset and refused", cloud.Command{Break: all[:1], Fault: cloud.Dead}, 200, 10 * time.Millisecond, callTimeout},
	{"home region silent: nothing is answered, nor the region list", cloud.Command{Break: all[:1], Fault: cloud.Silent}, 100, 100 * time.Millisecond, callTimeout},
	{"outage: every region answers 503", cloud.Command{Break: all, Fault: cloud.Unavailable}, 400, 10 * time.Millisecond, callTimeout},
	{"outage: every region dead", cloud.Command{Break: all, Fault: cloud.Dead}, 200, 10 * time.Millisecond, callTimeout},
	{"every region silent, calls with 1 s", cloud.Command{Break: all, Fault: cloud.Silent}, 20, 10 * time.Millisecond, time.Second},
	{"every region silent, calls with 6 s", cloud.Command{Break: all, Fault: cloud.Silent}, 20, 10 * time.Millisecond, 6 * time.Second},
}

// affected are the clients that scenarios are run with: one of each kind, as services use it.
var affected = []int{bare, lkrpcSigns, sdkSigns}

// play runs a scenario with each affected client at the same time, each with a cloud of its own: they wait more than they work.
// crowd in a hundred of the calls are made.
func (s scenario) play(ctx context.Context, b binaries, proto bench.Proto, crowd int, strict bool) ([]*outcome, error) {
	job := bench.Job{Proto: proto, Callers: 1, Calls: max(s.calls*crowd/100, 5), Every: s.every, Timeout: s.timeout, WarmUp: 200}
	outcomes, errs := make([]*outcome, len(affected)), make([]error, len(affected))
	var wg sync.WaitGroup
	for i, at := range affected {
		wg.Go(func() {
			c, err := startCloud(ctx, b, strict)
			if err != nil {
				errs[i] = err
				return
			}
			outcomes[i], err = trial(ctx, b, c, clients[at], job, s.breaks)
			errs[i] = errors.Join(err, c.end())
		})
	}
	wg.Wait()
	return outcomes, errors.Join(errs...)
}

// broken measures what outages do to calls. Over HTTP/2, as LiveKit Cloud speaks it.
func broken(ctx context.Context, s settings, b binaries, w io.Writer) error {
	t := table{head: []string{"scenario", "client", "calls", "lost", "median", "worst", "past the deadline", "requests a call"}}
	for _, sc := range scenarios {
		outcomes, err := sc.play(ctx, b, bench.HTTP2, s.crowd, false)
		if err != nil {
			return fmt.Errorf("%s: %w", sc.name, err)
		}
		for i, o := range outcomes {
			past := "-"
			if over := o.Worst - sc.timeout; over > 0 {
				past = span(over)
			}
			t.add(sc.name, clients[affected[i]].factory, fmt.Sprint(o.Calls), fmt.Sprint(o.Failed), span(o.Median), span(o.Worst), past,
				number(float64(o.requests)/float64(o.Calls)))
		}
	}
	t.print(w, "When regions break, HTTP/2, 10 s a call where nothing else is said")
	return nil
}
