package failover_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

const behindProxy = "LKRPC_TEST_BEHIND_PROXY"

// The default transport asks the environment for a proxy. net/http reads that once in a process, so this takes one of its own, which
// makes its call to a host that only the proxy knows.
func TestDefaultTransportHonoursTheProxy(t *testing.T) {
	if os.Getenv(behindProxy) != "" {
		rt, err := failover.New(nil, failover.WithoutPrefetch())
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req := must(http.NewRequestWithContext(ctx, http.MethodPost, "http://proj.livekit.cloud"+method, strings.NewReader("request")))
		req.Header.Set("Content-Type", protobuf)
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
		return
	}
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.String())
		mu.Unlock()
		ok(w, r)
	}))
	defer proxy.Close()
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			test.Env = append(test.Env, v)
		}
	}
	test.Env = append(test.Env, behindProxy+"=1", "HTTP_PROXY="+proxy.URL)
	if out, err := test.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0] != "http://proj.livekit.cloud"+method {
		t.Errorf("the proxy was asked for %q", asked)
	}
}
