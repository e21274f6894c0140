package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLiveKit(t *testing.T) {
	s := LiveKit(t)
	if err := ready(t.Context(), s.URL, s.Secret); err != nil {
		t.Error(err)
	}
	if err := ready(t.Context(), s.URL, "another secret"); err == nil {
		t.Error("a token of another secret is accepted")
	}
}

func TestTestServer(t *testing.T) {
	s := TestServer(t, 3)
	resp, err := client.Get(s.URLs[0] + "/settings/regions")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Regions []struct{ Region, URL string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if len(list.Regions) != 3 {
		t.Fatalf("%d regions listed, want 3", len(list.Regions))
	}
	for i, r := range list.Regions {
		if want := fmt.Sprintf("region-%d", i); r.Region != want || r.URL != s.URLs[i] {
			t.Errorf("region %d is %s at %s, want %s at %s", i, r.Region, r.URL, want, s.URLs[i])
		}
		if err := ready(t.Context(), r.URL, s.Secret); err != nil {
			t.Error(err)
		}
	}
}

func TestServersBesideEachOther(t *testing.T) {
	a, b := LiveKit(t), LiveKit(t)
	if a.URL == b.URL || a.Secret == b.Secret {
		t.Errorf("two servers share a URL or a secret: %s, %s", a.URL, b.URL)
	}
}

// A port that is taken between choosing and binding costs a try, not the test: even if what has it answers like a server.
func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})}
	go other.Serve(taken)
	defer other.Close()
	for name, p := range map[string]program{
		"test-server": {ports: []string{"tcp", "tcp"}, http: 2, command: func(ports []int) (args, env []string) {
			return []string{"--bind", loopback, "--ports", fmt.Sprintf("%d,%d", ports[0], ports[1]), "--api-secret", "s"}, nil
		}},
		"livekit-server": {ports: []string{"tcp", "tcp", "udp"}, http: 1, command: func(ports []int) (args, env []string) {
			return nil, []string{"LIVEKIT_CONFIG=" + config("s", ports[0], ports[1], ports[2], nil)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			p.name, p.secret = name, "s"
			p.choose = func(networks []string) ([]int, error) {
				ports, err := freePorts(networks)
				if tries++; tries < 3 {
					ports[0] = taken.Addr().(*net.TCPAddr).Port
				}
				return ports, err
			}
			ports := launch(t, p)
			if tries != 3 {
				t.Errorf("%d tries, want 3", tries)
			}
			if err := ready(t.Context(), localURL(ports[0]), "s"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestServerEndsWithItsTest(t *testing.T) {
	var url string
	t.Run("server", func(t *testing.T) { url = TestServer(t, 1).URLs[0] })
	if resp, err := client.Get(url); err == nil {
		resp.Body.Close()
		t.Error("the server answers after its test")
	}
}

// What keeps a server from running fails the test: a skip would hide that nothing was tested.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(testing.TB)
		says string
	}{
		"bad configuration": {func(t testing.TB) { LiveKit(t, Config("no_such_section: 1")) }, "no_such_section not found"},
		"section twice":     {func(t testing.TB) { LiveKit(t, Config("port: 7880")) }, `"port" already defined`},
		"no regions":        {func(t testing.TB) { TestServer(t, 0) }, "needs one at least"},
		"no such server":    {func(t testing.TB) { buildFor(t, "no-such-server") }, "no-such-server cannot be built"},
		"no free ports": {func(t testing.TB) {
			launch(t, program{name: "test-server", ports: []string{"sctp"}})
		}, "no free ports"},
		"ports always taken": {func(t testing.TB) {
			launch(t, program{name: "test-server", ports: []string{"tcp"}, http: 1, command: func(ports []int) (args, env []string) {
				return []string{"--bind", loopback, "--ports", fmt.Sprintf("%d,%d", ports[0], ports[0])}, nil
			}})
		}, "another process took"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &recorder{TB: t}
			var wg sync.WaitGroup
			wg.Go(func() { c.run(rec) })
			wg.Wait()
			if !strings.Contains(rec.fatal, c.says) {
				t.Errorf("the test failed with %q, want a word of %q", rec.fatal, c.says)
			}
		})
	}
}

// recorder is a test that notes its failure.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestConfig(t *testing.T) {
	got := config("s", 1, 2, 3, []Option{Webhooks("http://127.0.0.1:9/a", "http://127.0.0.1:9/b"), Config("\nroom: {auto_create: true}")})
	const want = `
webhook:
  api_key: lkrpc-test
  urls:
    - "http://127.0.0.1:9/a"
    - "http://127.0.0.1:9/b"
room: {auto_create: true}
`
	if !strings.HasSuffix(got, want) {
		t.Errorf("configuration:\n%s\nshould end with:%s", got, want)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 3*lockEvery)
	defer cancel()
	if _, err := lock(short, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a held lock: %v, want the deadline", err)
	}
	time.AfterFunc(2*lockEvery, unlock)
	second, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	second()
	if _, err := lock(t.Context(), filepath.Join(path, "under a file")); err == nil {
		t.Error("a lock that cannot be opened is given")
	}
}

func TestFreePortsDiffer(t *testing.T) {
	networks := []string{"tcp", "udp", "tcp", "udp", "tcp"}
	ports, err := freePorts(networks)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, port := range ports {
		id := fmt.Sprint(networks[i], port)
		if port == 0 || seen[id] {
			t.Errorf("ports %v: %s twice, or none", ports, id)
		}
		seen[id] = true
	}
}
