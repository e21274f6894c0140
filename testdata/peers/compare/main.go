package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
	"github.com/lkrpc/lkrpc/testdata/peers/bench/cloud"
)

func main() {
	ctx := context.Background()
	b := binaries{"cloud": "/tmp/pb/cloud", "ours": "/tmp/pb/ours", "sdk": "/tmp/pb/sdk"}
	for _, p := range bench.Protos() {
		for _, callers := range []int{1, 64} {
			for _, cl := range clients {
				c, err := startCloud(ctx, b, false)
				if err != nil {
					panic(err)
				}
				job := bench.Job{Proto: p, Callers: callers, For: time.Second, Timeout: 10 * time.Second, WarmUp: 640}
				if d := os.Getenv("PROF"); d != "" {
					job.CPUProfile = fmt.Sprintf("%s/cpu-%s-%d-%s-%t", d, p[len(p)-1:], callers, cl.factory, cl.sign)
				}
				o, err := trial(ctx, b, c, cl, job, cloud.Command{})
				if err != nil {
					panic(err)
				}
				n := float64(o.Calls)
				fmt.Printf("%-14s %2d %-30s %8.0f/s cpu %6.1fus allocs %6.1f bytes %7.0f opened %d left %d gor %d lists %d fail %d %v\n", p, callers, cl.name, n/o.Elapsed.Seconds(), float64(o.CPU.Microseconds())/n,
					float64(o.Allocs)/n, float64(o.Bytes)/n, o.opened, o.left, o.Goroutines, o.lists, o.Failed, o.Errors)
				c.end()
			}
		}
	}
}
