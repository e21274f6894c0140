package failover

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// Each case is what happens to one budget, step by step.
func TestBudget(t *testing.T) {
	const s = time.Second
	type step struct {
		after time.Duration // since the step before
		calls int           // that begin
		takes int           // repeats asked for after that
		gets  int           // those that are granted
	}
	for name, steps := range map[string][]step{
		"100 tokens":                   {{0, 0, 150, 100}, {0, 0, 1, 0}},
		"a repeat costs 1":             {{0, 0, 99, 99}, {0, 0, 1, 1}, {0, 0, 1, 0}},
		"1 a second":                   {{0, 0, 150, 100}, {s, 0, 5, 1}, {3 * s, 0, 5, 3}},
		"a part of a second is kept":   {{0, 0, 150, 100}, {s / 2, 0, 1, 0}, {s / 2, 0, 5, 1}},
		"0.2 a call":                   {{0, 0, 150, 100}, {0, 4, 1, 0}, {0, 1, 5, 1}, {0, 50, 50, 10}},
		"both":                         {{0, 0, 150, 100}, {s, 10, 50, 3}},
		"never more than 100":          {{0, 10000, 150, 100}, {time.Hour, 1000, 150, 100}},
		"full again after 100 seconds": {{0, 0, 150, 100}, {100 * s, 0, 150, 100}},
		"not yet full after 99":        {{0, 0, 150, 100}, {99 * s, 0, 150, 99}},
		"an empty one takes nothing":   {{0, 0, 1000, 100}, {s, 0, 1, 1}},
		"a clock that went back":       {{0, 0, 150, 100}, {-time.Hour, 0, 1, 0}, {time.Hour + s, 0, 5, 1}},
	} {
		var b budget
		now := noon
		for i, step := range steps {
			now = now.Add(step.after)
			for range step.calls {
				b.call()
			}
			gets := 0
			for range step.takes {
				if b.take(now) {
					gets++
				}
			}
			if gets != step.gets {
				t.Errorf("%s, step %d: %d of %d repeats, want %d", name, i+1, gets, step.takes, step.gets)
			}
		}
	}
}

func TestBudgetIsSharedSafely(t *testing.T) {
	var b budget
	var got atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 10 {
				if b.take(noon) {
					got.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got.Load() != 100 {
		t.Errorf("500 repeats of 50 callers at one moment: %d, want 100", got.Load())
	}
}
