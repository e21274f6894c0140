// Command dispatch is the smallest program that dispatches an agent with lkrpc: ../../sdk/dispatch does the same with LiveKit's
// SDK, and the two are compared by size. LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET say where.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
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
	c, err := lkrpc.New(url, auth.APIKey(key, secret))
	if err != nil {
		return "", err
	}
	defer c.Close()
	d, err := c.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "room", AgentName: "support"})
	return d.GetId(), err
}
