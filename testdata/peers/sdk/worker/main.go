// Command worker is the process in which LiveKit's SDK is measured. See bench.Main.
package main

import (
	"context"
	"net/http"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/lkrpc/lkrpc/testdata/peers/bench"
)

func main() { bench.Main(clients) }

var clients = map[string]bench.Factory{"server-sdk-go": newSDK}

// newSDK makes the SDK's client. It takes no transport: API calls and region lists go through http.DefaultTransport, so that is
// what leads to the site, changed in nothing else. It has no Close.
func newSDK(t bench.Target) (*bench.Client, error) {
	t.Lead(t.Proto, http.DefaultTransport.(*http.Transport))
	creds := lksdk.WithToken(t.Token)
	if t.Sign {
		creds = lksdk.WithAPIKey(t.Key, t.Secret)
	}
	api, err := lksdk.NewLiveKitAPI(lksdk.WithURL(t.URL), creds)
	if err != nil {
		return nil, err
	}
	c := api.AgentDispatch()
	return &bench.Client{Dispatch: func(ctx context.Context, room, agent string) (string, error) {
		d, err := c.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: room, AgentName: agent})
		return d.GetRoom(), err
	}}, nil
}
