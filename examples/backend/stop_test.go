package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// waitLimit is for what a busy machine may take long to do.
const waitLimit = time.Minute

// hold keeps the next creation of a room from its answer: entered says that it came, release lets it go on, and may be called twice.
func hold(cloud *cloudtest.Cloud) (entered <-chan struct{}, release func()) {
	come, released := make(chan struct{}), make(chan struct{})
	wait := func(*http.Request) bool { close(come); <-released; return true }
	cloud.Region(0).Break(cloudtest.Fault{}, cloudtest.On("RoomService/CreateRoom"), cloudtest.Times(1), cloudtest.If(wait))
	return come, sync.OnceFunc(func() { close(released) })
}

// postTo sends a POST /calls over the network. The channel gives the answer.
func postTo(t *testing.T, addr string) <-chan reply {
	t.Helper()
	answer := make(chan reply, 1)
	go func() {
		defer close(answer)
		body := `{"room": "r", "identity": "ann", "agent_name": "support"}`
		resp, err := http.Post("http://"+addr+"/calls", "application/json", strings.NewReader(body))
		if err != nil {
			t.Errorf("the request in flight: %v", err)
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("the answer in flight: %v", err)
		}
		answer <- read(resp.StatusCode, resp.Header, text)
	}()
	return answer
}

// receive returns what comes next on a channel.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitLimit):
		t.Fatalf("no %s in %v", what, waitLimit)
		panic("unreachable")
	}
}

// awaitRefusal returns when nothing listens any more.
func awaitRefusal(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return
		case err == nil:
			conn.Close()
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s still accepts connections: %v", addr, err)
		case <-tick.C:
		}
	}
}

// The order to stop ends the listening at once, and lets what runs be answered.
func TestGracefulStop(t *testing.T) {
	w := newWorld(t)
	defer w.close()
	entered, release := hold(w.cloud)
	defer release()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, w, newLogger(w.log)) }()
	answer := postTo(t, listener.Addr().String())
	receive(t, "request", entered)

	stop()
	awaitRefusal(t, listener.Addr().String())
	select {
	case err := <-ended:
		t.Fatalf("it ended before the request in flight: %v", err)
	case got := <-answer:
		t.Fatalf("the request in flight was answered %d too early", got.status)
	default:
	}
	release()
	if got := receive(t, "answer", answer); got.status != http.StatusOK || got.Token == "" {
		t.Errorf("the request in flight: status %d, %s", got.status, got.body)
	}
	if err := receive(t, "end", ended); err != nil {
		t.Error(err)
	}
}

// A listener that fails ends the service with an error.
func TestServeFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := serve(t.Context(), listener, http.NotFoundHandler(), newLogger(io.Discard)); err == nil {
		t.Error("no error")
	}
}

// The program as it is run: help, wrong settings, and its life from the start to SIGTERM amid a request.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "backend")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	command := func(t *testing.T, env []string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, args...)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "LIVEKIT_") && !strings.HasPrefix(v, "LK_") && !strings.HasPrefix(v, "AGENT_NAME=") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(append(cmd.Env, "LISTEN_ADDR=127.0.0.1:0"), env...)
		return cmd
	}
	cloud, err := cloudtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	target, err := url.Parse(cloud.URL)
	if err != nil {
		t.Fatal(err)
	}
	// The Cloud's name is known in this process only, so a proxy stands in front of it.
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: cloud.Transport(), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
	})
	defer proxy.Close()
	at, key, secret := "LIVEKIT_URL="+proxy.URL, "LIVEKIT_API_KEY="+cloud.Key, "LIVEKIT_API_SECRET="+cloud.Secret

	t.Run("usage", func(t *testing.T) {
		for _, test := range []struct {
			env    []string
			args   string
			status int
			want   string
		}{
			{nil, "-h", exitOK, "LIVEKIT_API_SECRET"},
			{nil, "", exitUsage, "LIVEKIT_URL is not set"},
			{[]string{at, key}, "", exitUsage, "LIVEKIT_API_SECRET"},
			{[]string{at, "LIVEKIT_TOKEN=eyJhbGciOiJIUzI1NiJ9.e30.c2ln"}, "", exitUsage, "LIVEKIT_"},
			{[]string{"LIVEKIT_URL=ftp://x", key, secret}, "", exitUsage, "ftp"},
			{[]string{at, key, secret, "AGENT_NAME=a\tb"}, "", exitUsage, "AGENT_NAME"},
			{[]string{at, key, secret, "LISTEN_ADDR=127.0.0.1:none"}, "", exitFailed, "cannot listen"},
			{[]string{at, key, secret}, "-speed", exitUsage, "-speed"},
			{[]string{at, key, secret}, "now", exitUsage, `"now" is no flag`},
		} {
			cmd := command(t, test.env, strings.Fields(test.args)...)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			status := cmd.ProcessState.ExitCode()
			if status != test.status || !bytes.Contains(out, []byte(test.want)) || bytes.Contains(out, []byte(cloud.Secret)) {
				t.Errorf("%v %s: exit status %d, want %d, output:\n%s", test.env, test.args, status, test.status, out)
			}
		}
	})

	t.Run("life", func(t *testing.T) {
		entered, release := hold(cloud)
		defer release()
		cmd := command(t, []string{at, key, secret})
		logs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(logs)
		var first struct{ Msg, Addr string }
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil || first.Msg != "listening" {
			t.Fatalf("the log begins with %q", lines.Text())
		}
		answer := postTo(t, first.Addr)
		receive(t, "request", entered)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		awaitRefusal(t, first.Addr)
		release()
		if got := receive(t, "answer", answer); got.status != http.StatusOK || got.Token == "" || got.URL != proxy.URL {
			t.Errorf("the request in flight: status %d, %s", got.status, got.body)
		}
		var last string
		for lines.Scan() {
			last = lines.Text()
			if strings.Contains(last, cloud.Secret) || strings.Contains(last, "eyJ") {
				t.Errorf("the log has a secret: %s", last)
			}
		}
		if err := cmd.Wait(); err != nil || !strings.Contains(last, `"msg":"stopped"`) {
			t.Errorf("it ended with %v; the log ends with %s", err, last)
		}
	})
}
