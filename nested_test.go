package lkrpc_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNestedModules runs the tests of each nested module: what needs more than our four requirements (real servers, peers,
// WebSocket libraries) lives in those. go test ./... in the root does not enter them by itself. A module without tests pins
// tools; it is proven to be complete, and TestNestedModulesAreUsed to be used. -short leaves this out, except under CI=true.
//
// The modules run one after the other, since each keeps the machine busy.
func TestNestedModules(t *testing.T) {
	if testing.Short() {
		if os.Getenv("CI") == "true" {
			t.Fatal("-short leaves the nested modules out, and CI=true says that nothing may be")
		}
		t.Skip("-short: the nested modules are left out")
	}
	for _, dir := range nestedModules(t) {
		t.Run(dir, func(t *testing.T) {
			if !hasTests(t, dir) {
				goIn(t, dir, "list", "-mod=readonly", "-deps", "tool")
				goIn(t, dir, "mod", "verify")
				return
			}
			args := []string{"test", "-mod=readonly", "-shuffle=on", "-timeout", timeLeft(t).String()}
			if raceEnabled(t) {
				args = append(args, "-race")
			}
			if testing.Verbose() {
				args = append(args, "-v")
			}
			t.Logf("%s", goIn(t, dir, append(args, "./...")...))
		})
	}
}

// nestedModules returns the folder of every module beneath this one, with slashes.
func nestedModules(t *testing.T) []string {
	t.Helper()
	var dirs []string
	walk(t, func(path string, d fs.DirEntry) {
		if dir := filepath.Dir(path); d.Name() == "go.mod" && dir != "." {
			dirs = append(dirs, filepath.ToSlash(dir))
		}
	})
	if len(dirs) == 0 {
		t.Fatal("no nested module found: is this the repository's root?")
	}
	return dirs
}

// walk calls f for every file of the repository.
func walk(t *testing.T, f func(path string, d fs.DirEntry)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if !d.IsDir() {
			f(path, d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func hasTests(t *testing.T, dir string) bool {
	t.Helper()
	const format = "{{range .TestGoFiles}}{{.}} {{end}}{{range .XTestGoFiles}}{{.}} {{end}}"
	return strings.TrimSpace(goIn(t, dir, "list", "-mod=readonly", "-f", format, "./...")) != ""
}

// goIn runs the go command in a module's folder and returns what it printed; a failure fails the test with it.
func goIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test passes it on to the tests
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK=off") // a workspace would hide what a go.mod lacks
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: go %s: %v\n%s%s", dir, strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// timeLeft is what the tests of a nested module may take: less than this test, so that their own report of what hangs comes.
func timeLeft(t *testing.T) time.Duration {
	deadline, ok := t.Deadline()
	if !ok {
		return 0 // no limit, as here
	}
	left := time.Until(deadline).Truncate(time.Second) - time.Minute
	if left <= 0 {
		t.Fatal("no time is left for the nested modules: run go test with -timeout 30m")
	}
	return left
}

// raceEnabled tells whether this test was built with -race.
func raceEnabled(t *testing.T) bool {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test binary tells nothing of how it was built")
	}
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
