package servers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the one that holds this package. The modules that pin the servers lie in folders beneath it.
const module = "github.com/lkrpc/lkrpc/testdata/servers"

// build returns the path of a server's binary, in the user's cache folder. The first caller of all processes builds it while
// the others wait; a new one is built when the pinned versions or the Go version change.
func build(ctx context.Context, name string) (string, error) {
	root, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", err
	}
	src := filepath.Join(root, name)
	id, err := buildID(ctx, src)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "lkrpc-servers", id)
	bin := filepath.Join(dir, name)
	if exists(bin) {
		return bin, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, bin+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(bin) {
		return bin, nil
	}
	// A build that is cut short leaves no binary: it gets its name when it is whole.
	unfinished := bin + ".unfinished"
	if _, err := goCommand(ctx, src, "build", "-mod=readonly", "-o", unfinished, "tool"); err != nil {
		return "", err
	}
	return bin, os.Rename(unfinished, bin)
}

// buildID names what a build depends on.
func buildID(ctx context.Context, src string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
	}
	env, err := goCommand(ctx, src, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	fmt.Fprint(hash, env)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// goCommand runs the go command in a folder, "" for this one, and returns what it prints.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if dir != "" {
		cmd.Env = append(cmd.Environ(), "GOWORK=off") // the pinned versions, whatever workspace is around
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(stdout.String()), nil
}
