package failover

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Both fleets make calls enough for one other region and two thirds of another.
var (
	// calm processes make a call a second; together the other regions can serve them all.
	calm = fleet{clients: 10_000, rate: 1, capacity: 6000, lasts: 6 * time.Second}
	// busy processes make ten, and the other regions together serve six of them.
	busy = fleet{clients: 100, rate: 10, capacity: 300, lasts: 20 * time.Second}
)

// variants are what is compared.
var variants = []struct {
	name string
	without
}{
	{"as-it-is", without{}},
	{"no-jitter", without{jitter: true}},
	{"no-cool-down", without{coolDown: true}},
	{"no-budget", without{budget: true}},
	{"none-of-them", without{true, true, true}},
}

// BenchmarkOutage simulates the death of a home region, and prints what load it brings to the other regions; the time of the
// benchmark itself says nothing. How it is done is told in simulation_test.go.
//
//	go test -run '^$' -bench Outage -benchtime 1x ./failover
func BenchmarkOutage(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	b.Run("10000-clients", func(b *testing.B) { benchmarkOutage(b, calm) })
	b.Run("busy-clients", func(b *testing.B) { benchmarkOutage(b, busy) })
}

func benchmarkOutage(b *testing.B, f fleet) {
	runs := make([]*simulation, len(variants))
	for b.Loop() {
		var tests []testing.InternalTest // a bubble needs a test
		for i, v := range variants {
			tests = append(tests, testing.InternalTest{Name: v.name, F: func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(*testing.T) { runs[i] = simulate(f, v.without) })
			}})
		}
		if !testing.RunTests(func(string, string) (bool, error) { return true, nil }, tests) {
			b.Fatal("a simulation failed")
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%d clients make %d calls/s each for %v; each of two other regions serves %d/s\n", f.clients, f.rate, f.lasts, f.capacity)
	fmt.Fprintf(&table, "%-14s%10s%14s%10s%10s%14s%14s\n", "", "peak/s", "at the end/s", "total", "per call", "at dead home", "failed calls")
	for i, s := range runs {
		calls := float64(s.calls)
		fmt.Fprintf(&table, "%-14s%10d%14d%10d%10.2f%14d%13.1f%%\n", variants[i].name, s.peak(), s.last(), s.total(),
			float64(s.total())/calls, s.home, 100*float64(s.failed)/calls)
		b.ReportMetric(float64(s.peak()), variants[i].name+"-peak/s")
		b.ReportMetric(float64(s.total()), variants[i].name+"-total")
	}
	b.Log(table.String())
}

// What the simulation shows, on a smaller scale: each part of the defence is worth something. Jitter is drawn anew in each run, so
// the bounds are some five standard deviations from what 60 runs gave.
func TestOutageSimulation(t *testing.T) {
	run := func(f fleet, w without) *simulation {
		var s *simulation
		synctest.Test(t, func(*testing.T) { s = simulate(f, w) })
		if want := f.clients * f.rate * int((f.lasts-simStall)/time.Second); s.calls != want {
			t.Errorf("%d calls were counted, want %d", s.calls, want)
		}
		return s
	}
	small := fleet{clients: calm.clients / 50, rate: calm.rate, capacity: calm.capacity / 50, lasts: calm.lasts}
	is := run(small, without{})
	if calls := small.clients * small.rate; is.last() > calls*11/10 {
		t.Errorf("load at the end %d/s for %d calls/s: want it to have settled", is.last(), calls)
	}
	if other := run(small, without{jitter: true}); other.peak() < 4*is.peak() {
		t.Errorf("peak without jitter %d/s, with it %d/s: want four times as much at least", other.peak(), is.peak())
	}
	if other := run(small, without{coolDown: true}); 10*other.last() < 12*is.last() {
		t.Errorf("load at the end without cool-down %d/s, with it %d/s: want a fifth more at least", other.last(), is.last())
	}
	few := fleet{clients: busy.clients / 5, rate: busy.rate, capacity: busy.capacity / 5, lasts: busy.lasts}
	is = run(few, without{})
	if other := run(few, without{budget: true}); 10*other.last() < 12*is.last() {
		t.Errorf("load at the end without budget %d/s, with it %d/s: want a fifth more at least", other.last(), is.last())
	}
}
