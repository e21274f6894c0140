package lkrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// An agent is dispatched to a room, and has come. (The Cloud of this example runs in the process: with a project of your own leave
// it out, and the option WithHTTPTransport with it.)
func Example() {
	cloud, err := cloudtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer cloud.Close()
	defer cloud.AddWorker("support", 0)()
	ctx := context.Background()

	client, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, cloud.Secret), lkrpc.WithHTTPTransport(cloud.Transport()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	dispatch, created, err := client.EnsureDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"})
	if err != nil {
		log.Fatal(err)
	}
	job, err := client.WaitForAgent(ctx, "call-17", dispatch.GetId())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(created, job.GetAgentName(), job.GetState().GetStatus())
	// Output: true support JS_RUNNING
}

// What a person wants to know when a call has failed.
func ExampleError() {
	cloud, err := cloudtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer cloud.Close()
	client, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, cloud.Secret), lkrpc.WithHTTPTransport(cloud.Transport()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, region := range cloud.Regions() {
		region.Break(cloudtest.Status(500, nil, "out of order"))
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = client.SIP.CreateSIPParticipant(ctx, &livekit.CreateSIPParticipantRequest{SipTrunkId: "ST_1", SipCallTo: "+15550100", RoomName: "call-17"})
	var e *lkrpc.Error
	if errors.As(err, &e) {
		fmt.Println(e.Service, e.Method, e.Code(), e.HTTPStatus, len(e.Attempts))
		fmt.Println("may have rung:", e.OutcomeUnknown)
	}
	// Output:
	// SIP CreateSIPParticipant unknown 500 1
	// may have rung: true
}
