package cloudtest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// The home region fails, and the agent is dispatched all the same.
func Example() {
	cloud, err := cloudtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer cloud.Close()

	client, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, cloud.Secret),
		lkrpc.WithHTTPTransport(cloud.Transport()),
		lkrpc.WithFailover(failover.OnAttempt(func(_ context.Context, a failover.Attempt) {
			fmt.Println(a.Number, a.Origin, a.Reason)
		})))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	cloud.Region(0).Break(cloudtest.Status(503, nil, "maintenance"), cloudtest.On(cloudtest.API))
	d, err := client.AgentDispatch.CreateDispatch(context.Background(), &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("dispatched", d.GetAgentName(), "to", d.GetRoom())
	// Output:
	// 1 https://demo.livekit.cloud 503 Service Unavailable
	// 2 https://demo.frankfurt.production.livekit.cloud answered
	// dispatched support to call-17
}

// A lost reply: the server did what was asked, and the answer never came. LiveKit Cloud recognises the request when it comes
// again.
func ExampleAfter() {
	cloud, err := cloudtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer cloud.Close()
	client, err := lkrpc.New(cloud.API().URL(), auth.APIKey(cloud.Key, cloud.Secret), lkrpc.WithHTTPTransport(cloud.Transport()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	cloud.API().Break(cloudtest.After(cloudtest.Drop()), cloudtest.On("AgentDispatchService/CreateDispatch"), cloudtest.Times(1))
	req := &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"}
	if _, err := client.AgentDispatch.CreateDispatch(context.Background(), req); err != nil {
		log.Fatal(err)
	}
	for _, q := range cloud.Requests() {
		fmt.Println(q.RPC, q.Fault, q.Status)
	}
	fmt.Println("took effect:", len(cloud.Effects()))
	// Output:
	// AgentDispatchService/CreateDispatch after drop 0
	// AgentDispatchService/CreateDispatch  200
	// took effect: 1
}
