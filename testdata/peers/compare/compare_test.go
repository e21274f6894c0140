package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
	"github.com/lkrpc/lkrpc/testdata/peers/bench/cloud"
)

// built are the programs, built once.
var built binaries

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "peers")
	if err == nil {
		defer os.RemoveAll(dir)
		var root string
		if root, err = moduleRoot(ctx); err == nil {
			built, err = build(ctx, root, dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func fresh(t testing.TB) *fakeCloud {
	t.Helper()
	c, err := startCloud(t.Context(), built, true)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every client makes every call over every protocol, each of which arrives once; who signs has a token a room.
func TestHealthyCalls(t *testing.T) {
	for _, p := range bench.Protos() {
		for _, cl := range slices.Concat(clients, steps[1:len(steps)-1]) {
			t.Run(fmt.Sprint(p, " ", cl.name), func(t *testing.T) {
				t.Parallel()
				c := fresh(t)
				o, err := trial(t.Context(), built, c, cl, bench.Job{Proto: p, Callers: 4, Calls: 40, Timeout: time.Minute, WarmUp: 8}, cloud.Command{})
				if err != nil {
					t.Fatal(err)
				}
				tokens := 1
				if cl.sign {
					tokens = 48 // the warm-up's too
				}
				if o.Calls != 40 || o.Failed != 0 || o.requests != 40 || o.tokens != tokens {
					t.Errorf("%d calls, %d failed (%v), %d requests, %d tokens", o.Calls, o.Failed, o.Errors, o.requests, o.tokens)
				}
				if o.opened < 1 || o.Allocs == 0 || o.Bytes == 0 || o.CPU <= 0 {
					t.Errorf("nothing was measured: %+v", o)
				}
				if cl.program == "ours" && (o.Goroutines != 0 || o.left != 0) {
					t.Errorf("%d goroutines and %d connections are left", o.Goroutines, o.left)
				}
				if err := c.end(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// What each client makes of each scenario. No time is looked at but that deadlines passed or did not.
func TestBrokenRegions(t *testing.T) {
	lost := map[string]string{ // a letter for bare, lkrpc and server-sdk-go: all calls lost, or none
		"home region answers 503":                         "x..",
		"home region dead: connections reset and refused": "x.x",
		"outage: every region answers 503":                "xxx",
		"outage: every region dead":                       "xxx",
		"every region silent, calls with 1 s":             "xxx",
	}
	for _, s := range scenarios {
		want, short := lost[s.name]
		if !short {
			continue // these wait for ten seconds and more
		}
		delete(lost, s.name)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			outcomes, err := s.play(t.Context(), built, bench.HTTP2, 5, true)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range outcomes {
				name, failed := clients[affected[i]].name, 0
				if want[i] == 'x' {
					failed = o.Calls
				}
				if o.Calls < 5 || o.Failed != failed {
					t.Errorf("%s: %d of %d calls lost, want %d: %v", name, o.Failed, o.Calls, failed, o.Errors)
				}
				if s.breaks.Fault == cloud.Unavailable && o.requests < int64(o.Calls) {
					t.Errorf("%s: %d requests for %d calls", name, o.requests, o.Calls)
				}
			}
		})
	}
	if len(lost) > 0 {
		t.Errorf("there is no scenario %v", lost)
	}
}

func TestWeigh(t *testing.T) {
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := weighOne(t.Context(), root, t.TempDir(), "ours", "lkrpc", false)
	if err != nil {
		t.Fatal(err)
	}
	if w.size < 1<<20 || w.foreign == 0 || w.packages <= w.foreign || w.linked == 0 || w.listed <= w.linked {
		t.Errorf("%+v", w)
	}
	if w.listed > 9 {
		t.Errorf("a program that imports lkrpc has %d modules in its build list, more than 9", w.listed)
	}
}

func TestTables(t *testing.T) {
	g := &group{clients: clients, proto: bench.TLS, callers: 64, rounds: make([][]*outcome, len(clients))}
	for i := range clients {
		for round := range 3 {
			r := bench.Result{Calls: 10 * (5 - i), Elapsed: time.Duration(round+1) * time.Second, CPU: time.Second, Allocs: 500, Bytes: 10240}
			g.rounds[i] = append(g.rounds[i], &outcome{Result: r})
		}
	}
	if got := g.median(bare, throughput); got != 25 {
		t.Errorf("median %v", got)
	}
	if got := g.ratio(lkrpcToken, bare, throughput); got != 0.8 {
		t.Errorf("ratio %v", got)
	}
	var text strings.Builder
	g.print(&text, "Healthy calls")
	(&targets{groups: []*group{g}, ours: &weight{size: 1, listed: 10}, theirs: &weight{size: 2}}).print(&text)
	lines := strings.Split(text.String(), "\n")
	for _, want := range []string{"server-sdk-go's, both sign | 3.00 | ≥ 9.00 | no", "server-sdk-go's | 50.0 | ≤ 66.0 | yes", "imports lkrpc | 10.0 | ≤ 9.00 | no"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(squeeze(l), want) }) {
			t.Errorf("no line has %q in\n%s", want, text.String())
		}
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// BenchmarkDispatch measures each client's calls in its own process; what go test counts is beside the point, so only that is
// reported. Compare the lines of one run with each other.
//
//	go test -C testdata/peers -run '^$' -bench Dispatch ./compare
func BenchmarkDispatch(b *testing.B) {
	for _, p := range bench.Protos() {
		for _, callers := range []int{1, 64} {
			for _, cl := range clients {
				b.Run(fmt.Sprintf("%s/callers=%d/%s", strings.ReplaceAll(string(p), "/", ""), callers, strings.ReplaceAll(cl.name, ", ", "/")), func(b *testing.B) {
					b.ReportAllocs()
					c, err := startCloud(b.Context(), built, false)
					if err != nil {
						b.Fatal(err)
					}
					defer c.end()
					o, err := trial(b.Context(), built, c, cl, bench.Job{Proto: p, Callers: callers, Calls: b.N, Timeout: callTimeout, WarmUp: 128}, cloud.Command{})
					if err != nil {
						b.Fatal(err)
					}
					if o.Failed > 0 {
						b.Fatalf("%d calls failed: %v", o.Failed, o.Errors)
					}
					b.ReportMetric(float64(o.Elapsed)/float64(o.Calls), "ns/op")
					b.ReportMetric(float64(o.CPU)/float64(o.Calls), "cpu-ns/op")
					b.ReportMetric(allocsPerCall(o), "allocs/op")
					b.ReportMetric(float64(o.Bytes)/float64(o.Calls), "B/op")
					b.ReportMetric(float64(o.opened), "conns")
				})
			}
		}
	}
}
