package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
)

// settings are what the command line says.
type settings struct {
	parts   []string // of allParts
	protos  []bench.Proto
	callers []int
	rounds  int
	length  time.Duration // of one measurement of healthy calls
	warmUp  int           // calls before it
	crowd   int           // calls of a scenario of broken.go: this many in a hundred of what is there
	cold    bool
}

var allParts = []string{"healthy", "steps", "broken", "weight"}

func main() {
	s := settings{protos: bench.Protos(), callers: []int{1, 64}, warmUp: 640, crowd: 100}
	only := flag.String("only", strings.Join(allParts, ","), "parts to run")
	quick := flag.Bool("quick", false, "fewer and shorter rounds: the numbers are worth little")
	flag.IntVar(&s.rounds, "rounds", 7, "rounds of healthy calls")
	flag.DurationVar(&s.length, "for", time.Second, "length of one measurement of healthy calls")
	flag.BoolVar(&s.cold, "cold", false, "with weight: also build with an empty build cache, which takes minutes")
	flag.Parse()
	s.parts = strings.Split(*only, ",")
	if *quick {
		s.rounds, s.length, s.crowd = 2, 200*time.Millisecond, 10
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// compare runs what the settings say, and prints tables as they get ready.
func compare(ctx context.Context, s settings, w io.Writer) error {
	for _, part := range s.parts {
		if !slices.Contains(allParts, part) {
			return fmt.Errorf("there is no part %q, only %q", part, allParts)
		}
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := build(ctx, root, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s %s/%s, %d processors, load %s at the start; %d rounds of %v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), load(), s.rounds, s.length)
	var t targets
	for _, part := range s.parts {
		switch part {
		case "healthy":
			err = healthy(ctx, s, b, w, &t)
		case "steps":
			err = ablation(ctx, s, b, w)
		case "broken":
			err = broken(ctx, s, b, w)
		case "weight":
			err = weigh(ctx, s, root, dir, w, &t)
		}
		if err != nil {
			return err
		}
	}
	t.print(w)
	fmt.Fprintf(w, "\nLoad %s at the end.\n", load())
	return nil
}

// load is the machine's load of the last minute, where the system tells it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
