package lkrpc_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// The host of LK_AGENTS_URL counts as a Cloud API host: what creates is repeated there, and it is never asked for regions.
func TestAgentsURLIsACloudAPI(t *testing.T) {
	t.Setenv("LK_AGENTS_URL", "https://agents.example.com")
	synctest.Test(t, func(t *testing.T) {
		var paths []string
		client := newTestClient(t, "wss://sfu.example.com", roundTripper(func(r *http.Request) (*http.Response, error) {
			paths = append(paths, r.URL.Host+r.URL.Path)
			if len(paths) == 1 {
				return answer(r, 500, "text/plain", ""), nil
			}
			return answer(r, 200, "application/protobuf", ""), nil
		}), lkrpc.WithFailover(failover.WithoutPrefetch()))
		const path = "agents.example.com/twirp/livekit.CloudAgent/CreateAgent"
		if _, err := client.CloudAgent.CreateAgent(background, &livekit.CreateAgentRequest{}); err != nil || len(paths) != 2 || paths[0] != path || paths[1] != path {
			t.Errorf("%v after %q, want two requests for %s", err, paths, path)
		}
	})
}

// A server that is named by LK_AGENTS_URL too stays what it is: no Cloud API, whose creates are repeated and which has no regions.
func TestAgentsURLOfTheServerItself(t *testing.T) {
	for server, want := range map[string]int{"wss://sfu.example.com": 1, "https://SFU.example.com.:8443": 1, "wss://proj.livekit.cloud": 3} {
		t.Setenv("LK_AGENTS_URL", strings.Replace(strings.ToLower(server), ".:8443", "", 1))
		synctest.Test(t, func(t *testing.T) {
			var calls, lists int
			client := newTestClient(t, server, roundTripper(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/settings/regions") {
					lists++
				} else {
					calls++
				}
				return answer(r, 500, "text/plain", ""), nil
			}), lkrpc.WithFailover(failover.WithoutPrefetch()))
			_, err := client.Egress.StartWebEgress(background, &livekit.WebEgressRequest{})
			if err == nil || calls != want || lists > 0 != (want > 1) {
				t.Errorf("%s: %v after %d requests and %d for the region list, want %d requests", server, err, calls, lists, want)
			}
		})
	}
}
