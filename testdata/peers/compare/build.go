package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are the folders of the three kinds of process, by module. The two SDKs are never in one program, nor in one module.
var programs = map[string]struct{ module, pkg string }{
	"cloud": {"bench", "./cmd/cloud"},
	"ours":  {"ours", "./worker"},
	"sdk":   {"sdk", "./worker"},
}

// client is one thing that is compared.
type client struct {
	name    string // in tables
	program string
	factory string
	sign    bool
}

// clients in the order of the tables; the first is what the others are compared with.
var clients = []client{
	{"bare, ready token", "ours", "bare", false},
	{"lkrpc, ready token", "ours", "lkrpc", false},
	{"lkrpc, new room each", "ours", "lkrpc", true},
	{"server-sdk-go, ready token", "sdk", "server-sdk-go", false},
	{"server-sdk-go, new room each", "sdk", "server-sdk-go", true},
}

// steps lead from the bare client to lkrpc, each with all before it (ours/worker/steps.go).
var steps = []client{
	clients[bare],
	{"+ bodies read whole", "ours", "bare+body", false},
	{"+ a context an attempt", "ours", "bare..context", false},
	{"+ httptrace", "ours", "bare..trace", false},
	{"+ request id, time left", "ours", "bare..headers", false},
	{"+ a goroutine an attempt", "ours", "bare..goroutine", false},
	{"+ a timer", "ours", "bare..timer", false},
	clients[lkrpcToken],
}

// The places of clients.
const (
	bare = iota
	lkrpcToken
	lkrpcSigns
	sdkToken
	sdkSigns
)

// binaries are the built programs, by name.
type binaries map[string]string

// build builds all programs into a folder. root is that of this module.
func build(ctx context.Context, root, dir string) (binaries, error) {
	b := make(binaries)
	for name, p := range programs {
		b[name] = filepath.Join(dir, name)
		if _, err := goCommand(ctx, filepath.Join(root, p.module), nil, "build", "-o", b[name], p.pkg); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// goCommand runs the go command in a folder and returns what it prints.
func goCommand(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly"), env...)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// moduleRoot is the folder of this module: this command is run by its source.
func moduleRoot(ctx context.Context) (string, error) {
	mod, err := goCommand(ctx, ".", nil, "env", "GOMOD")
	if err != nil {
		return "", err
	}
	root := filepath.Dir(strings.TrimSpace(mod))
	if _, err := os.Stat(filepath.Join(root, "compare", "build.go")); err != nil {
		return "", fmt.Errorf("run this in its own module: go run -C testdata/peers ./compare")
	}
	return root, nil
}
