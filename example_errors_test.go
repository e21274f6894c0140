package lkrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// What a person wants to know when a call has failed, and what a program decides by.
func ExampleError() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()
	for _, region := range cloud.Regions() {
		region.Break(cloudtest.Status(500, nil, "out of order"))
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := client.SIP.CreateSIPParticipant(ctx, &livekit.CreateSIPParticipantRequest{SipTrunkId: "ST_1", SipCallTo: "+15550100", RoomName: "call-17"})
	var e *lkrpc.Error
	if errors.As(err, &e) {
		fmt.Println(e.Service, e.Method, e.Code(), e.HTTPStatus, len(e.Attempts))
		fmt.Println("may have rung:", e.OutcomeUnknown)
	}
	// Output:
	// SIP CreateSIPParticipant unknown 500 1
	// may have rung: true
}

// The reply to a create is lost, on a server that is not known to recognise request ids: it is not sent again blindly, and the
// error says that the outcome is unknown. So look.
func ExampleError_outcomeUnknown() {
	cloud := exampleCloud()
	defer cloud.Close()
	host, err := cloud.AddHost("sfu.example.com")
	if err != nil {
		log.Fatal(err)
	}
	client := exampleClientOf(cloud, host.URL())
	defer client.Close()
	ctx := context.Background()

	host.Break(cloudtest.After(cloudtest.Drop()), cloudtest.On("Ingress/CreateIngress"))
	_, err = client.Ingress.CreateIngress(ctx, &livekit.CreateIngressRequest{Name: "camera 1", RoomName: "studio"})
	var e *lkrpc.Error
	if errors.As(err, &e) && e.OutcomeUnknown {
		there, err := client.Ingress.ListIngress(ctx, &livekit.ListIngressRequest{RoomName: "studio"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Code(), "but it is there:", len(there.GetItems()) == 1)
	}
	// Output: unavailable but it is there: true
}

// A call that was not answered ends with the status that the phone network gave. It is not repeated.
func ExampleSIPStatus() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()
	cloud.Region(0).Break(cloudtest.TwirpError(twirp.NewError(twirp.Unavailable, "the call was not answered").
		WithMeta("sip_status_code", "486").WithMeta("sip_status", "Busy Here"))) // as LiveKit says it

	_, err := client.SIP.CreateSIPParticipant(context.Background(), &livekit.CreateSIPParticipantRequest{
		SipTrunkId: "ST_1", SipCallTo: "+15550100", RoomName: "call-17", WaitUntilAnswered: true,
	})
	if code, reason, ok := lkrpc.SIPStatus(err); ok {
		fmt.Println(code, reason)
	}
	// Output: 486 Busy Here
}

// An order is worked on twice, perhaps by two processes, and its call is dispatched once: LiveKit Cloud derives the id from the
// key. A key that was used for one request cannot be used for another.
func ExampleWithRequestID() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()

	ctx := lkrpc.WithRequestID(context.Background(), "order-4711-call")
	var ids []string
	for range 2 {
		dispatch, err := client.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"})
		if err != nil {
			log.Fatal(err)
		}
		ids = append(ids, dispatch.GetId())
	}
	fmt.Println("one dispatch:", ids[0] == ids[1])

	_, err := client.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "call-18", AgentName: "support"})
	var e *lkrpc.Error
	if errors.As(err, &e) {
		fmt.Println(e.Code(), len(e.Attempts))
	}
	// Output:
	// one dispatch: true
	// invalid_argument 0
}
