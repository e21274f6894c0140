package main

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// program is the built command.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "dispatch")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "dispatch")
		if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			os.Stderr.WriteString("go build: " + err.Error() + "\n" + string(out))
			return 1
		}
		return m.Run()
	}())
}

// command prepares a run of the program, with nothing of LiveKit's in the environment but what is given.
func command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LIVEKIT_") && !strings.HasPrefix(v, "LK_") && !strings.HasPrefix(v, "NO_COLOR=") && !strings.HasPrefix(v, "TERM=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, "TERM=xterm"), env...)
	return cmd
}

// runProgram runs the program and returns what it wrote and its exit status.
func runProgram(t *testing.T, env []string, args ...string) (out, errs string, status int) {
	t.Helper()
	cmd := command(t.Context(), env, args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return o.String(), e.String(), status
}

// What a person reads: every attempt, where, what happened, the waits, and the end.
const demonstration = `(?s)` +
	`1\. The home region, chicago, answers 503\.\n` +
	`  attempt  where .*?\n` +
	`  1        demo\.livekit\.cloud +\S+  503 Service Unavailable\n` +
	` +\S+  wait\n` +
	`  2        demo\.frankfurt\.production\.livekit\.cloud +\S+  answered\n` +
	`  OK  dispatch AD_\w+ of agent "support" to room "call-17"\n` +
	`.*\n2\. A request to cloud-api is lost.*?\n` +
	`  1        cloud-api\.livekit\.io +\S+  the connection broke.*?\n` +
	` +\S+  wait\n` +
	`  2        cloud-api\.livekit\.io +\S+  answered\n` +
	`  OK  dispatch AD_\w+ .*?\n +It was made once` +
	`.*\n3\. The home region is dead.*?\n` +
	`  1        demo\.livekit\.cloud +\S+  answered\n.*?` +
	`  1        demo\.livekit\.cloud +\S+  no connection.*?\n` +
	` +\S+  wait\n` +
	`  2        demo\.frankfurt\.production\.livekit\.cloud +\S+  answered\n` +
	`  OK  dispatch AD_\w+ .*` +
	`\n4\. Everything is down\.\n.*` +
	`  3        demo\.\S+ +\S+  no connection.*?no attempt is left.*?\n` +
	`  FAILED  AgentDispatchService/CreateDispatch: unavailable: .*connection refused\n` +
	` +Nothing was dispatched\. Attempts: 3\. Request id: \S+\n`

func TestDemonstration(t *testing.T) {
	t.Parallel()
	out, errs, status := runProgram(t, nil)
	if status != exitOK || errs != "" || !regexp.MustCompile(demonstration).MatchString(out) {
		t.Errorf("exit status %d, errors %q, output:\n%s", status, errs, out)
	}
	if strings.Contains(out, "\x1b") || strings.Contains(out, "eyJ") {
		t.Errorf("colours or a token in a pipe:\n%q", out)
	}
}

func TestHelp(t *testing.T) {
	out, errs, status := runProgram(t, []string{"LIVEKIT_URL=wss://demo.livekit.cloud"}, "-h")
	for _, flag := range []string{"-room", "-agent", "-metadata", "-wait", "-h", "LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET", "Exit status"} {
		if !strings.Contains(out, flag) {
			t.Errorf("the help does not mention %s", flag)
		}
	}
	if status != exitOK || errs != "" {
		t.Errorf("exit status %d, errors %q", status, errs)
	}
}

func TestUsage(t *testing.T) {
	url, key, secret := "LIVEKIT_URL=wss://demo.livekit.cloud", "LIVEKIT_API_KEY=k", "LIVEKIT_API_SECRET=a-secret-of-thirty-two-characters"
	for _, test := range []struct {
		env  []string
		args string
		want string
	}{
		{nil, "-speed 9", "-speed"},
		{nil, "now", `"now" is no flag`},
		{nil, "-wait soon", `"soon"`},
		{nil, "-room r", "-agent"},
		{nil, "-agent a", "-room"},
		{nil, "-room r -agent a", "LIVEKIT_URL is not set"},
		{[]string{url}, "", "-room (for the demonstration, unset"},
		{[]string{url}, "-room r -agent a", "LIVEKIT_API_KEY"},
		{[]string{url, key}, "-room r -agent a", "LIVEKIT_API_SECRET"},
		{[]string{"LIVEKIT_URL=ftp://x", key, secret}, "-room r -agent a", "ftp"},
		{[]string{url, key, secret}, "-room r -agent a -wait -1s", "negative"},
	} {
		out, errs, status := runProgram(t, test.env, strings.Fields(test.args)...)
		if status != exitUsage || out != "" || !strings.Contains(errs, test.want) || !strings.Contains(errs, "-h for help") {
			t.Errorf("%v %s: exit status %d, output %q, errors %q", test.env, test.args, status, out, errs)
		}
	}
}

// served makes a project reachable at a URL of this machine, as a proxy in front of it would.
func served(t *testing.T) (cloud *cloudtest.Cloud, env []string) {
	t.Helper()
	cloud, err := cloudtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cloud.Close() })
	target, err := url.Parse(cloud.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: cloud.Transport(), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	t.Cleanup(proxy.Close)
	return cloud, []string{"LIVEKIT_URL=" + strings.Replace(proxy.URL, "http", "ws", 1), "LIVEKIT_API_KEY=" + cloud.Key, "LIVEKIT_API_SECRET=" + cloud.Secret}
}

func TestDispatch(t *testing.T) {
	cloud, env := served(t)
	out, errs, status := runProgram(t, env, "-room", "r", "-agent", "a", "-metadata", "m")
	if status != exitOK || errs != "" || !strings.Contains(out, "answered\n  OK  dispatch AD_") {
		t.Errorf("exit status %d, errors %q, output:\n%s", status, errs, out)
	}
	var made []string
	for _, d := range cloud.Dispatches("r") {
		if d.GetAgentName() != "" {
			made = append(made, d.GetAgentName()+" "+d.GetMetadata())
			if !strings.Contains(out, d.GetId()) {
				t.Errorf("dispatch %s is not in the output:\n%s", d.GetId(), out)
			}
		}
	}
	if len(made) != 1 || made[0] != "a m" {
		t.Errorf("dispatched %q", made)
	}
	out, errs, status = runProgram(t, env, "-room", "r", "-agent", "a")
	if status != exitOK || errs != "" || !strings.Contains(out, "is in room \"r\" already") {
		t.Errorf("again: exit status %d, errors %q, output:\n%s", status, errs, out)
	}
}

func TestDispatchAndWait(t *testing.T) {
	t.Parallel()
	cloud, env := served(t)
	cloud.AddWorker("a", 0)
	out, _, status := runProgram(t, env, "-room", "r", "-agent", "a", "-wait", "1m")
	if status != exitOK || !regexp.MustCompile(`OK  job AJ_\w+: JS_RUNNING\n`).MatchString(out) {
		t.Errorf("exit status %d, output:\n%s", status, out)
	}
	out, _, status = runProgram(t, env, "-room", "r", "-agent", "nobody", "-wait", "300ms")
	if status != exitFailed || !strings.Contains(out, "FAILED") || !strings.Contains(out, "no agent has come") {
		t.Errorf("nobody came: exit status %d, output:\n%s", status, out)
	}
}

func TestDispatchFails(t *testing.T) {
	cloud, env := served(t)
	for rpc, want := range map[string]string{"RoomService/ListRooms": "Nothing was dispatched", "RoomService/CreateRoom": "is unknown"} {
		cloud.Region(0).Break(cloudtest.Status(500, nil, "broken"), cloudtest.On(rpc))
		out, _, status := runProgram(t, env, "-room", "r", "-agent", "a")
		if status != exitFailed || !strings.Contains(out, "500 Internal Server Error") || !strings.Contains(out, "FAILED  "+rpc) || !strings.Contains(out, want) {
			t.Errorf("exit status %d, output:\n%s", status, out)
		}
		cloud.Heal()
	}
	out, _, status := runProgram(t, append(env, "LIVEKIT_API_SECRET=another-secret-of-thirty-two-characters"), "-room", "r", "-agent", "a")
	if status != exitFailed || !strings.Contains(out, "unauthenticated") || !strings.Contains(out, "Nothing was dispatched") {
		t.Errorf("exit status %d, output:\n%s", status, out)
	}
}

// A dispatch that no agent took is deleted, so that the next run can bring one.
func TestDispatchAgainAfterNoAgent(t *testing.T) {
	cloud, env := served(t)
	out, _, status := runProgram(t, env, "-room", "r", "-agent", "a", "-wait", "300ms")
	if status != exitFailed || !strings.Contains(out, "Deleting the dispatch") {
		t.Errorf("exit status %d, output:\n%s", status, out)
	}
	cloud.AddWorker("a", 0)
	if out, _, status := runProgram(t, env, "-room", "r", "-agent", "a", "-wait", "1m"); status != exitOK {
		t.Errorf("exit status %d, output:\n%s", status, out)
	}
}
