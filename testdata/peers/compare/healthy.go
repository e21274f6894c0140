package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
	"github.com/lkrpc/lkrpc/testdata/peers/bench/cloud"
)

// callTimeout is the deadline of every call: what a service would set, and enough for all failovers.
const callTimeout = 10 * time.Second

// metric is one thing that is measured of healthy calls.
type metric struct {
	name string
	of   func(*outcome) float64
}

var metrics = []metric{
	{"calls/s", throughput},
	{"CPU µs", cpuPerCall},
	{"allocs", allocsPerCall},
	{"KiB", func(o *outcome) float64 { return float64(o.Bytes) / 1024 / float64(o.Calls) }},
}

func throughput(o *outcome) float64 { return float64(o.Calls) / o.Elapsed.Seconds() }

func cpuPerCall(o *outcome) float64 { return float64(o.CPU) / 1e3 / float64(o.Calls) }

func allocsPerCall(o *outcome) float64 { return float64(o.Allocs) / float64(o.Calls) }

// group is one way of making healthy calls, and what came of it: a row for each client, an outcome for each round.
type group struct {
	clients []client // the first is what the others are compared with
	proto   bench.Proto
	callers int
	rounds  [][]*outcome
}

// median is that of a metric over a client's rounds.
func (g *group) median(client int, of func(*outcome) float64) float64 {
	var v []float64
	for _, o := range g.rounds[client] {
		v = append(v, of(o))
	}
	return median(v)
}

// ratio is the median of one client's metric over another's in the same round.
func (g *group) ratio(client, to int, of func(*outcome) float64) float64 {
	var v []float64
	for i, o := range g.rounds[client] {
		v = append(v, of(o)/of(g.rounds[to][i]))
	}
	return median(v)
}

// measure runs the rounds of a group.
func measure(ctx context.Context, s settings, b binaries, clients []client, proto bench.Proto, callers int) (*group, error) {
	g := &group{clients: clients, proto: proto, callers: callers, rounds: make([][]*outcome, len(clients))}
	c, err := startCloud(ctx, b, false)
	if err != nil {
		return nil, err
	}
	defer c.end()
	job := bench.Job{Proto: proto, Callers: callers, For: s.length, Timeout: callTimeout, WarmUp: s.warmUp}
	for round := range s.rounds {
		for i := range clients {
			at := (i + round) % len(clients) // each goes first once, and follows the same one always
			if round%2 == 1 {
				at = len(clients) - 1 - at // and then the other way round
			}
			o, err := trial(ctx, b, c, clients[at], job, cloud.Command{})
			if err != nil {
				return nil, err
			}
			if o.Failed > 0 {
				return nil, fmt.Errorf("%s: %d of %d healthy calls failed: %v", clients[at].name, o.Failed, o.Calls, o.Errors)
			}
			g.rounds[at] = append(g.rounds[at], o)
		}
	}
	return g, nil
}

// healthy measures calls that succeed at once.
func healthy(ctx context.Context, s settings, b binaries, w io.Writer, t *targets) error {
	for _, proto := range s.protos {
		for _, callers := range s.callers {
			g, err := measure(ctx, s, b, clients, proto, callers)
			if err != nil {
				return err
			}
			t.groups = append(t.groups, g)
			g.print(w, "Healthy calls")
		}
	}
	return nil
}

// ablation measures what each thing costs that a failover layer needs for a healthy call, over HTTP/1.1, where a bare call costs
// least.
func ablation(ctx context.Context, s settings, b binaries, w io.Writer) error {
	for _, callers := range s.callers {
		g, err := measure(ctx, s, b, steps, bench.Plain, callers)
		if err != nil {
			return err
		}
		g.print(w, "From bare to lkrpc, step by step")
	}
	return nil
}

func (g *group) print(w io.Writer, title string) {
	t := table{head: []string{"per call; × is the ratio to bare"}}
	for _, m := range metrics {
		t.head = append(t.head, m.name, "×")
	}
	t.head = append(t.head, "connections", "left: goroutines", "connections")
	for i, c := range g.clients {
		row := []string{c.name}
		for _, m := range metrics {
			row = append(row, number(g.median(i, m.of)), ratio(g.ratio(i, bare, m.of)))
		}
		count := func(of func(*outcome) int) string {
			return fmt.Sprintf("%.0f", g.median(i, func(o *outcome) float64 { return float64(of(o)) }))
		}
		t.add(append(row, count(func(o *outcome) int { return o.opened }),
			count(func(o *outcome) int { return o.Goroutines }), count(func(o *outcome) int { return o.left }))...)
	}
	callers := "one caller"
	if g.callers > 1 {
		callers = fmt.Sprint(g.callers, " callers")
	}
	t.print(w, fmt.Sprintf("%s, %s, %s", title, g.proto, callers))
}
