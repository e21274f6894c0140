package main

import (
	"fmt"
	"io"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
)

// targets holds what was measured for the comparison with what was aimed at.
type targets struct {
	groups       []*group
	ours, theirs *weight
}

// print writes the targets whose part was run.
func (t *targets) print(w io.Writer) {
	tab := table{head: []string{"target", "is", "aim", "met"}}
	least := func(name string, is, aim float64) { tab.add(name, number(is), "≥ "+number(aim), yes(is >= aim)) }
	most := func(name string, is, aim float64) { tab.add(name, number(is), "≤ "+number(aim), yes(is <= aim)) }
	for _, g := range t.groups {
		if g.callers == 1 {
			continue
		}
		name := fmt.Sprintf("%s, %d callers: throughput ÷ ", g.proto, g.callers)
		if aim := map[bench.Proto]float64{bench.Plain: 1.8, bench.TLS: 9}[g.proto]; aim > 0 {
			least(name+"server-sdk-go's, both sign", g.ratio(lkrpcSigns, sdkSigns, throughput), aim)
			least(name+"server-sdk-go's, ready tokens", g.ratio(lkrpcToken, sdkToken, throughput), aim)
		}
		most(fmt.Sprintf("%s, %d callers: bare's throughput ÷ ours", g.proto, g.callers), g.ratio(bare, lkrpcToken, throughput), 1.08)
	}
	for _, g := range t.groups {
		if g.callers == 1 {
			most(fmt.Sprintf("%s, one caller: CPU ÷ bare's", g.proto), g.ratio(lkrpcToken, bare, cpuPerCall), 1.08)
		}
	}
	if len(t.groups) > 0 {
		var token, signs float64
		for _, g := range t.groups {
			token, signs = max(token, g.ratio(lkrpcToken, bare, allocsPerCall)), max(signs, g.ratio(lkrpcSigns, bare, allocsPerCall))
		}
		most("allocations ÷ bare's, ready token, worst case", token, 1.4)
		most("allocations ÷ bare's, each call signs for a new room, worst case", signs, 1.7)
	}
	if t.ours != nil {
		most("stripped dispatch program, % of server-sdk-go's", 100*float64(t.ours.size)/float64(t.theirs.size), 66)
		most("modules in the build list of a program that imports lkrpc", float64(t.ours.listed), 9)
	}
	if len(tab.rows) > 0 {
		tab.print(w, "Targets")
	}
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}
