package lkrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// A plain dispatch: one more agent, whether or not there is one, and into a new room the unnamed workers too. Where one agent is
// wanted, EnsureDispatch is the call.
func ExampleClient_dispatch() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()

	dispatch, err := client.AgentDispatch.CreateDispatch(context.Background(), &livekit.CreateAgentDispatchRequest{
		Room: "call-17", AgentName: "support", Metadata: `{"customer":4711}`,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dispatch.GetAgentName(), dispatch.GetRoom(), dispatch.GetMetadata())
	// Output: support call-17 {"customer":4711}
}

// The second call finds what the first one did.
func ExampleClient_EnsureDispatch() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()

	for range 2 {
		dispatch, created, err := client.EnsureDispatch(context.Background(), &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"})
		switch {
		case errors.Is(err, lkrpc.ErrCannotTell):
			log.Fatal("try again later: ", err) // an agent may be there or not; no other was sent
		case err != nil:
			log.Fatal(err)
		}
		fmt.Println(dispatch.GetAgentName(), created)
	}
	// Output:
	// support true
	// support false
}

// An agent comes, or not: then the dispatch is deleted before another is ensured. No worker was registered when it was made, so
// no job ever comes to it, and ensuring again would only find it.
func ExampleClient_WaitForAgent() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()
	ctx := context.Background()
	req := &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"}

	dispatch, _, err := client.EnsureDispatch(ctx, req)
	if err != nil {
		log.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // without a deadline it is 30 s
	defer cancel()
	_, err = client.WaitForAgent(short, req.Room, dispatch.GetId())
	fmt.Println("nobody came:", errors.Is(err, lkrpc.ErrNoAgent))

	defer cloud.AddWorker("support", 0)() // somebody starts a worker
	_, err = client.AgentDispatch.DeleteDispatch(ctx, &livekit.DeleteAgentDispatchRequest{Room: req.Room, DispatchId: dispatch.GetId()})
	if e, ok := errors.AsType[*lkrpc.Error](err); err != nil && (!ok || e.Code() != twirp.NotFound) { // not_found: it is gone already
		log.Fatal(err)
	}
	dispatch, _, err = client.EnsureDispatch(ctx, req)
	if err != nil {
		log.Fatal(err)
	}
	job, err := client.WaitForAgent(ctx, req.Room, dispatch.GetId())
	switch {
	case errors.Is(err, lkrpc.ErrJobFailed):
		log.Fatal("it came and failed: ", err) // with the agent's own text
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println("somebody came:", job.GetAgentName(), job.GetState().GetStatus())
	// Output:
	// nobody came: true
	// somebody came: support JS_RUNNING
}
