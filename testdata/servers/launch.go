package servers

import (
	"context"
	"testing"
	"time"
)

const (
	// buildLimit is generous: a cold build takes minutes, and more beside other work.
	buildLimit = 20 * time.Minute
	// startLimit is too: a server takes a second, and more on a busy machine.
	startLimit = 2 * time.Minute
	// portTries is how often other ports are chosen when another process took one between choosing and binding.
	portTries = 10
)

// program says how to run a server.
type program struct {
	name    string   // of the nested module that pins it
	secret  string   // API secret, which only this run of it accepts
	ports   []string // network of each port that it needs
	http    int      // how many of them, from the first, serve HTTP
	command func(ports []int) (args, env []string)

	choose func(networks []string) ([]int, error) // nil for freePorts
}

// launch builds and starts a program, waits until it serves, and returns its ports.
func launch(t testing.TB, p program) []int {
	t.Helper()
	bin := buildFor(t, p.name)
	if p.choose == nil {
		p.choose = freePorts
	}
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	for range portTries {
		ports, err := p.choose(p.ports)
		if err != nil {
			t.Fatalf("no free ports for %s: %v", p.name, err)
		}
		args, env := p.command(ports)
		proc := start(bin, args, env)
		err = proc.awaitReady(ctx, ports[:p.http], p.secret)
		if err == nil {
			t.Cleanup(func() {
				proc.stop()
				if t.Failed() {
					t.Logf("log of %s:\n%s", p.name, proc.log.Bytes())
				}
			})
			return ports
		}
		proc.stop()
		if !proc.portTaken() {
			t.Fatalf("%s did not start: %v\n%s", p.name, err, proc.log.Bytes())
		}
	}
	t.Fatalf("%s did not start: each time another process took one of its ports, %d times", p.name, portTries)
	return nil
}

func buildFor(t testing.TB, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	bin, err := build(ctx, name)
	if err != nil {
		t.Fatalf("%s cannot be built: %v", name, err)
	}
	return bin
}
