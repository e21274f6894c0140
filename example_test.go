package lkrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
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

func ExampleNew() {
	client, err := lkrpc.New("wss://my-project.livekit.cloud", auth.APIKey("APIabcdef", "the-secret"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(client) // without the secret

	_, err = lkrpc.New("localhost:99999", auth.APIKey("APIabcdef", "the-secret"))
	fmt.Println(err)
	// Output:
	// lkrpc.Client(my-project.livekit.cloud)
	// lkrpc: server URL "localhost:99999": its port "99999" is none of 1 to 65535; give one such as "wss://my-project.livekit.cloud"
}

func ExampleNewFromEnv() {
	// As the shell has done: export LIVEKIT_URL=... LIVEKIT_API_KEY=... LIVEKIT_API_SECRET=...
	os.Setenv("LIVEKIT_URL", "wss://my-project.livekit.cloud")
	os.Setenv("LIVEKIT_API_KEY", "APIabcdef")
	os.Setenv("LIVEKIT_API_SECRET", "the-secret")

	client, err := lkrpc.NewFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(client)

	os.Unsetenv("LIVEKIT_API_SECRET")
	_, err = lkrpc.NewFromEnv()
	fmt.Println(err)
	// Output:
	// lkrpc.Client(my-project.livekit.cloud)
	// lkrpc: LIVEKIT_API_SECRET is not set in the environment
}

// All services are fields of the Client.
func ExampleClient() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()
	ctx := context.Background()

	if _, err := client.Room.CreateRoom(ctx, &livekit.CreateRoomRequest{Name: "studio", MaxParticipants: 20}); err != nil {
		log.Fatal(err)
	}
	rooms, err := client.Room.ListRooms(ctx, &livekit.ListRoomsRequest{})
	if err != nil {
		log.Fatal(err)
	}
	for _, room := range rooms.GetRooms() {
		fmt.Println(room.GetName(), room.GetMaxParticipants())
	}
	// Output: studio 20
}

// Agents that LiveKit Cloud hosts. Their API is at agents.livekit.cloud, which the Client derives from the project's URL.
func ExampleClient_cloudAgent() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()

	agents, err := client.CloudAgent.ListAgents(context.Background(), &livekit.ListAgentsRequest{})
	fmt.Println(len(agents.GetAgents()), err)

	own, err := lkrpc.New("wss://sfu.example.com", auth.APIKey("APIabcdef", "the-secret"))
	if err != nil {
		log.Fatal(err)
	}
	defer own.Close()
	_, err = own.CloudAgent.ListAgents(context.Background(), &livekit.ListAgentsRequest{})
	var e *lkrpc.Error
	fmt.Println(errors.As(err, &e) && e.Code() == twirp.FailedPrecondition)
	// Output:
	// 0 <nil>
	// true
}

// notify is code of a service that uses LiveKit. It takes the one interface that it needs.
func notify(ctx context.Context, rooms livekit.RoomService, room, text string) error {
	_, err := rooms.SendData(ctx, &livekit.SendDataRequest{Room: room, Data: []byte(text), Kind: livekit.DataPacket_RELIABLE})
	return err
}

// fakeRooms stands in for LiveKit. What a test does not need is left to the embedded interface, which is nil.
type fakeRooms struct {
	livekit.RoomService
	sent []string
}

func (f *fakeRooms) SendData(_ context.Context, req *livekit.SendDataRequest) (*livekit.SendDataResponse, error) {
	f.sent = append(f.sent, req.GetRoom()+": "+string(req.GetData()))
	return &livekit.SendDataResponse{}, nil
}

// A test of one's own code without any server: a fake in place of a field.
func Example_fake() {
	fake := &fakeRooms{}
	err := notify(context.Background(), fake, "studio", "five minutes left")
	fmt.Println(fake.sent, err)
	// Output: [studio: five minutes left] <nil>
}

// A test of one's own code against an outage: the home region fails, and the call is answered elsewhere.
func Example_outage() {
	cloud, err := cloudtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()
	if _, err := client.Room.CreateRoom(context.Background(), &livekit.CreateRoomRequest{Name: "studio"}); err != nil {
		log.Fatal(err)
	}

	cloud.Region(0).Break(cloudtest.Status(503, nil, "maintenance"), cloudtest.On(cloudtest.API))
	err = notify(context.Background(), client.Room, "studio", "five minutes left")
	fmt.Println(err)
	for _, r := range cloud.Requests() {
		if r.RPC == "RoomService/SendData" {
			fmt.Println(r.Host, r.Status)
		}
	}
	// Output:
	// <nil>
	// demo.livekit.cloud 503
	// demo.frankfurt.production.livekit.cloud 200
}

// exampleCloud is a LiveKit Cloud in the process.
func exampleCloud() *cloudtest.Cloud {
	cloud, err := cloudtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	return cloud
}

// exampleClient is a client of its project.
func exampleClient(cloud *cloudtest.Cloud, opts ...lkrpc.Option) *lkrpc.Client {
	return exampleClientOf(cloud, cloud.URL, opts...)
}

func exampleClientOf(cloud *cloudtest.Cloud, url string, opts ...lkrpc.Option) *lkrpc.Client {
	client, err := lkrpc.New(url, auth.APIKey(cloud.Key, cloud.Secret), append(opts, lkrpc.WithHTTPTransport(cloud.Transport()))...)
	if err != nil {
		log.Fatal(err)
	}
	return client
}
