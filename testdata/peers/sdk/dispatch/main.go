// Command dispatch is the smallest program that dispatches an agent with LiveKit's SDK; see ../../ours/dispatch.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
)

func main() {
	id, err := dispatch(context.Background(), os.Getenv("LIVEKIT_URL"), os.Getenv("LIVEKIT_API_KEY"), os.Getenv("LIVEKIT_API_SECRET"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(id)
}

func dispatch(ctx context.Context, url, key, secret string) (string, error) {
	c := lksdk.NewAgentDispatchServiceClient(url, key, secret)
	d, err := c.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "room", AgentName: "support"})
	return d.GetId(), err
}
