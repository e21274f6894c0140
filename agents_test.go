package lkrpc_test

import (
	"net/http"
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
