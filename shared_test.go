package lkrpc_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Header maps, option slices and messages belong to the caller, who may use one in many calls at once. The race detector sees a
// write to one, and what is left behind is compared.
func TestSharedRequest(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, _ *lkrpc.Client) {
		header := http.Header{"x-tenant": {"t"}}
		options := append(make([]failover.Option, 0, 9), failover.Hosts("sfu.example.com"))
		client := clientOf(t, cloud, cloud.URL, lkrpc.WithHeader(header), lkrpc.WithFailover(options...))
		defer client.Close()
		if err := cloud.AddParticipant("r", &livekit.ParticipantInfo{Identity: "p"}); err != nil {
			t.Fatal(err)
		}
		dispatch := &livekit.CreateAgentDispatchRequest{Room: "r", AgentName: "a", Attributes: map[string]string{"a": "1", "b": "2"}}
		data := &livekit.SendDataRequest{Room: "r", Data: []byte("d")}
		phone := &livekit.CreateSIPParticipantRequest{RoomName: "r", SipTrunkId: "t", SipCallTo: "+1", WaitUntilAnswered: true}
		transfer := &livekit.TransferSIPParticipantRequest{RoomName: "r", ParticipantIdentity: "p", TransferTo: "tel:+1"}
		whatsApp := &livekit.AcceptWhatsAppCallRequest{RoomName: "r", WhatsappCallId: "w"}
		rooms := &livekit.ListRoomsRequest{Names: []string{"r"}}
		messages := []proto.Message{dispatch, data, phone, transfer, whatsApp, rooms}
		var before []proto.Message
		for _, m := range messages {
			before = append(before, proto.Clone(m))
		}
		cloud.Region(0).Break(cloudtest.Status(503, nil, ""), cloudtest.On(cloudtest.API), cloudtest.Times(15)) // some are sent twice
		ctx := withHeaders(t, http.Header{"X-Trace": {"1"}})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				ctx := ctx
				if i%2 == 0 {
					ctx = lkrpc.WithRequestID(ctx, "the-same-key")
				}
				_, err1 := client.AgentDispatch.CreateDispatch(ctx, dispatch)
				_, _, err2 := client.EnsureDispatch(ctx, dispatch)
				_, err3 := client.Room.SendData(background, data)
				_, err4 := client.SIP.CreateSIPParticipant(background, phone)
				_, err5 := client.SIP.TransferSIPParticipant(background, transfer)
				_, err6 := client.Connector.AcceptWhatsAppCall(background, whatsApp)
				_, err7 := client.Room.ListRooms(ctx, rooms)
				if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for i, m := range messages {
			if !proto.Equal(m, before[i]) {
				t.Errorf("a caller's message was changed from %v to %v", before[i], m)
			}
		}
		if !reflect.DeepEqual(header, http.Header{"x-tenant": {"t"}}) || options[:2][1] != nil {
			t.Errorf("a caller's map or slice was changed: %v, %v", header, options[:2])
		}
	})
}

// What a call needs is made explicit on a copy: the ringing time that both sides count on, where the caller left it open.
func TestRingingTimeIsSent(t *testing.T) {
	for _, c := range []struct {
		rpc  string
		ring time.Duration
		want time.Duration // as it is sent; 0: not at all
		call func(context.Context, *lkrpc.Client, *durationpb.Duration) error
	}{
		{"SIP/CreateSIPParticipant", 0, 30 * time.Second, phoneWaiting(true)},
		{"SIP/CreateSIPParticipant", 20 * time.Second, 20 * time.Second, phoneWaiting(true)},
		{"SIP/CreateSIPParticipant", 0, 0, phoneWaiting(false)},
		{"SIP/TransferSIPParticipant", 0, 30 * time.Second, transferred},
		{"SIP/TransferSIPParticipant", 20 * time.Second, 20 * time.Second, transferred},
		{"Connector/AcceptWhatsAppCall", 0, 30 * time.Second, accepted},
		{"Connector/AcceptWhatsAppCall", 20 * time.Second, 20 * time.Second, accepted},
	} {
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			if err := cloud.AddParticipant("r", &livekit.ParticipantInfo{Identity: "p"}); err != nil {
				t.Fatal(err)
			}
			var ring *durationpb.Duration
			if c.ring > 0 {
				ring = durationpb.New(c.ring)
			}
			if err := c.call(background, client, ring); err != nil {
				t.Fatal(err)
			}
			if requests, _ := count(cloud, c.rpc); requests != 1 {
				t.Errorf("%d requests for %s, want 1", requests, c.rpc)
			}
			for _, r := range cloud.Requests() {
				if r.RPC != c.rpc {
					continue
				}
				req := interface {
					proto.Message
					GetRingingTimeout() *durationpb.Duration
				}(&livekit.CreateSIPParticipantRequest{})
				switch c.rpc {
				case "SIP/TransferSIPParticipant":
					req = &livekit.TransferSIPParticipantRequest{}
				case "Connector/AcceptWhatsAppCall":
					req = &livekit.AcceptWhatsAppCallRequest{}
				}
				if err := proto.Unmarshal(r.Body, req); err != nil {
					t.Fatal(err)
				}
				if got := req.GetRingingTimeout().AsDuration(); got != c.want {
					t.Errorf("%s with %v: a ringing time of %v was sent, want %v", c.rpc, c.ring, got, c.want)
				}
			}
		})
	}
}

func phoneWaiting(wait bool) func(context.Context, *lkrpc.Client, *durationpb.Duration) error {
	return func(ctx context.Context, c *lkrpc.Client, ring *durationpb.Duration) error {
		_, err := c.SIP.CreateSIPParticipant(ctx, &livekit.CreateSIPParticipantRequest{
			RoomName: "r", SipTrunkId: "t", SipCallTo: "+1", WaitUntilAnswered: wait, RingingTimeout: ring,
		})
		return err
	}
}

func transferred(ctx context.Context, c *lkrpc.Client, ring *durationpb.Duration) error {
	_, err := c.SIP.TransferSIPParticipant(ctx, &livekit.TransferSIPParticipantRequest{
		RoomName: "r", ParticipantIdentity: "p", TransferTo: "tel:+1", RingingTimeout: ring,
	})
	return err
}

func accepted(ctx context.Context, c *lkrpc.Client, ring *durationpb.Duration) error {
	_, err := c.Connector.AcceptWhatsAppCall(ctx, &livekit.AcceptWhatsAppCallRequest{RoomName: "r", WhatsappCallId: "w", RingingTimeout: ring})
	return err
}

// All attempts of a call have the same body, nonce included, and the same request id; another call has another.
func TestAttemptsAreAlike(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		nonces := map[string]int{}
		for range 2 {
			cloud.Forget()
			home := cloud.Region(0).Break(cloudtest.Status(500, nil, ""), cloudtest.On("RoomService/SendData"))
			next := cloud.Region(1).Break(cloudtest.After(cloudtest.Drop()), cloudtest.On("RoomService/SendData"))
			if _, err := client.Room.SendData(background, &livekit.SendDataRequest{Room: support.Room, Data: []byte("d")}); err != nil {
				t.Fatal(err)
			}
			home.Clear()
			next.Clear()
			var first *cloudtest.Request
			attempts := 0
			for _, r := range cloud.Requests() {
				if r.RPC != "RoomService/SendData" {
					continue
				}
				attempts++
				if first == nil {
					first = &r
				}
				var req livekit.SendDataRequest
				if err := proto.Unmarshal(r.Body, &req); err != nil || len(req.GetNonce()) != 16 {
					t.Errorf("nonce %x, %v", req.GetNonce(), err)
				}
				nonces[string(req.GetNonce())]++
				if !bytes.Equal(r.Body, first.Body) || r.RequestID != first.RequestID || r.RequestID == "" {
					t.Errorf("attempt %d: body %x, request id %q; the first had %x, %q", attempts, r.Body, r.RequestID, first.Body, first.RequestID)
				}
			}
			if attempts != 3 {
				t.Errorf("%d attempts, want 3", attempts)
			}
		}
		if len(nonces) != 2 {
			t.Errorf("%d nonces in two calls, want 2", len(nonces))
		}
	})
}

// X-Twirp-Timeout-Ms is the time left to the call, less on each attempt, so that the server gives up when the client does.
func TestTimeoutShrinks(t *testing.T) {
	for _, c := range []struct{ deadline, want time.Duration }{{0, 30 * time.Second}, {20 * time.Second, 20 * time.Second}, {3 * time.Second, 3 * time.Second}} {
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			slow := cloudtest.Answer(func(w http.ResponseWriter, r *http.Request) {
				pause := time.NewTimer(time.Second)
				defer pause.Stop()
				select {
				case <-pause.C:
					w.WriteHeader(500)
				case <-r.Context().Done():
				}
			})
			for _, h := range cloud.Regions()[:2] {
				h.Break(slow, cloudtest.On(listRooms))
			}
			ctx := background
			if c.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			began := time.Now()
			_, err := client.Room.ListRooms(ctx, &livekit.ListRoomsRequest{})
			requests, _ := count(cloud, listRooms)
			if repeats := c.want >= 5*time.Second; (err == nil) != repeats || requests != map[bool]int{true: 3, false: 1}[repeats] {
				t.Errorf("deadline %v: %v after %d requests", c.deadline, err, requests)
			}
			for _, r := range cloud.Requests() {
				if r.RPC != listRooms {
					continue
				}
				ms, err := time.ParseDuration(r.Header.Get("X-Twirp-Timeout-Ms") + "ms")
				want := c.want - r.Time.Sub(began) + 250*time.Millisecond
				if err != nil || ms > want || ms < want-100*time.Millisecond {
					t.Errorf("deadline %v: X-Twirp-Timeout-Ms gives %v, want %v", c.deadline, ms, want)
				}
			}
		})
	}
}

// A key of the caller's is the caller's own retry: on LiveKit Cloud it does not create a second dispatch, in another process too.
func TestRequestIDAcrossProcesses(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		other := clientOf(t, cloud, cloud.URL)
		defer other.Close()
		ctx := lkrpc.WithRequestID(background, "order-4711")
		first, err1 := client.AgentDispatch.CreateDispatch(ctx, support)
		again, err2 := client.AgentDispatch.CreateDispatch(ctx, support)
		there, err3 := other.AgentDispatch.CreateDispatch(ctx, support)
		if err := errors.Join(err1, err2, err3); err != nil || again.GetId() != first.GetId() || there.GetId() != first.GetId() {
			t.Errorf("%v, %v, %v: %v; want one dispatch", first, again, there, err)
		}
		wantOne(t, cloud, first)
		if _, effects := count(cloud, createDispatch); effects != 1 {
			t.Errorf("%d effects, want 1", effects)
		}
	})
}
