package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// weight is what a program that dispatches an agent costs with one of the SDKs.
type weight struct {
	sdk      string
	size     int64 // bytes, stripped
	packages int   // linked, of the standard library too
	foreign  int   // of them, not of the standard library
	linked   int   // modules with a package in the program, itself left out
	listed   int   // modules of the build list, the program included
	cold     time.Duration
}

// benchModule is in the build list of the programs' modules because the workers need it. The dispatch programs do not, and it
// requires nothing, so it is left out of the count.
const benchModule = "github.com/lkrpc/lkrpc/testdata/peers/bench"

// weighOne builds the dispatch program of a module into dir, and counts.
func weighOne(ctx context.Context, root, dir, module, sdk string, cold bool) (*weight, error) {
	at := filepath.Join(root, module)
	w := &weight{sdk: sdk}
	file := filepath.Join(dir, module+"-dispatch")
	build := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", file, "./dispatch"}
	if _, err := goCommand(ctx, at, nil, build...); err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	w.size = info.Size()
	packages, err := goCommand(ctx, at, nil, "list", "-deps", "-f", "{{.Standard}}", "./dispatch")
	if err != nil {
		return nil, err
	}
	w.packages, w.foreign = strings.Count(packages, "\n"), strings.Count(packages, "false\n")
	version, err := goCommand(ctx, at, nil, "version", "-m", file)
	if err != nil {
		return nil, err
	}
	w.linked = strings.Count(version, "\n\tdep\t")
	modules, err := goCommand(ctx, at, nil, "list", "-m", "all")
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(strings.TrimSpace(modules), "\n") {
		if path, _, _ := strings.Cut(line, " "); path != benchModule {
			w.listed++
		}
	}
	if !cold {
		return w, nil
	}
	cache := filepath.Join(dir, module+"-cache")
	defer os.RemoveAll(cache)
	began := time.Now()
	_, err = goCommand(ctx, at, []string{"GOCACHE=" + cache}, build...)
	w.cold = time.Since(began)
	return w, err
}

// weigh compares the two dispatch programs.
func weigh(ctx context.Context, s settings, root, dir string, out io.Writer, t *targets) error {
	ours, err := weighOne(ctx, root, dir, "ours", "lkrpc", s.cold)
	if err != nil {
		return err
	}
	theirs, err := weighOne(ctx, root, dir, "sdk", "server-sdk-go", s.cold)
	if err != nil {
		return err
	}
	t.ours, t.theirs = ours, theirs
	tab := table{head: []string{"a program that dispatches an agent", ours.sdk, theirs.sdk, "ratio"}}
	row := func(name string, of func(*weight) float64, unit string) {
		a, b := of(ours), of(theirs)
		tab.add(name, number(a)+unit, number(b)+unit, ratio(a/b))
	}
	row("size, stripped", func(w *weight) float64 { return float64(w.size) / (1 << 20) }, " MiB")
	row("packages linked", func(w *weight) float64 { return float64(w.packages) }, "")
	row("not of the standard library", func(w *weight) float64 { return float64(w.foreign) }, "")
	row("modules linked", func(w *weight) float64 { return float64(w.linked) }, "")
	row("modules in the build list, itself included", func(w *weight) float64 { return float64(w.listed) }, "")
	if s.cold {
		row("build with an empty cache", func(w *weight) float64 { return w.cold.Seconds() }, " s")
	}
	tab.print(out, "Weight")
	if !s.cold {
		fmt.Fprintln(out, "\nThe time of a build from nothing takes minutes to measure: -cold.")
	}
	return nil
}
