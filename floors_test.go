package lkrpc_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Calls that ring have the time of the ringing, unless the caller says otherwise.
func TestTimeOfCallsThatRing(t *testing.T) {
	sip := func(ring time.Duration, wait bool) func(context.Context, *lkrpc.Client) error {
		return func(ctx context.Context, c *lkrpc.Client) error {
			req := &livekit.CreateSIPParticipantRequest{SipTrunkId: "ST_1", SipCallTo: "+1", RoomName: "r", WaitUntilAnswered: wait}
			if ring > 0 {
				req.RingingTimeout = durationpb.New(ring)
			}
			_, err := c.SIP.CreateSIPParticipant(ctx, req)
			return err
		}
	}
	transfer := func(ring time.Duration) func(context.Context, *lkrpc.Client) error {
		return func(ctx context.Context, c *lkrpc.Client) error {
			req := &livekit.TransferSIPParticipantRequest{RoomName: "r", ParticipantIdentity: "p", TransferTo: "tel:+1"}
			if ring > 0 {
				req.RingingTimeout = durationpb.New(ring)
			}
			_, err := c.SIP.TransferSIPParticipant(ctx, req)
			return err
		}
	}
	rpc := func(ctx context.Context, c *lkrpc.Client) error {
		_, err := c.Room.PerformRpc(ctx, &livekit.PerformRpcRequest{Room: "r", DestinationIdentity: "p", Method: "m", ResponseTimeoutMs: 40_000})
		return err
	}
	whatsApp := func(ring time.Duration) func(context.Context, *lkrpc.Client) error {
		return func(ctx context.Context, c *lkrpc.Client) error {
			req := &livekit.AcceptWhatsAppCallRequest{RoomName: "r", WhatsappCallId: "w", WaitUntilAnswered: true}
			if ring > 0 {
				req.RingingTimeout = durationpb.New(ring)
			}
			_, err := c.Connector.AcceptWhatsAppCall(ctx, req)
			return err
		}
	}
	plain := func(ctx context.Context, c *lkrpc.Client) error {
		_, err := c.Ingress.CreateIngress(ctx, &livekit.CreateIngressRequest{RoomName: "r"})
		return err
	}
	for _, c := range []struct {
		name     string
		rpc      string
		call     func(context.Context, *lkrpc.Client) error
		deadline time.Duration // the caller's, 0 for none
		answer   time.Duration // when the server answers
		want     time.Duration // of X-Twirp-Timeout-Ms, less its slack
		fails    bool
	}{
		{"ring 20 s, answered at 18 s", "SIP/CreateSIPParticipant", sip(20*time.Second, true), 0, 18 * time.Second, 30 * time.Second, false},
		{"ring 40 s, answered at 41 s", "SIP/CreateSIPParticipant", sip(40*time.Second, true), 0, 41 * time.Second, 42 * time.Second, false},
		{"ring as by default, answered at 31 s", "SIP/CreateSIPParticipant", sip(0, true), 0, 31 * time.Second, 32 * time.Second, false},
		{"not waited for", "SIP/CreateSIPParticipant", sip(0, false), 0, 29 * time.Second, 30 * time.Second, false},
		{"the caller's 2 s", "SIP/CreateSIPParticipant", sip(20*time.Second, true), 2 * time.Second, 18 * time.Second, 2 * time.Second, true},
		{"transfer", "SIP/TransferSIPParticipant", transfer(0), 0, 31 * time.Second, 32 * time.Second, false},
		{"transfer, ring 20 s, answered at 18 s", "SIP/TransferSIPParticipant", transfer(20 * time.Second), 0, 18 * time.Second, 30 * time.Second, false},
		{"transfer, ring 40 s, answered at 41 s", "SIP/TransferSIPParticipant", transfer(40 * time.Second), 0, 41 * time.Second, 42 * time.Second, false},
		{"transfer, the caller's 2 s", "SIP/TransferSIPParticipant", transfer(0), 2 * time.Second, 18 * time.Second, 2 * time.Second, true},
		{"WhatsApp, answered at 31 s", "Connector/AcceptWhatsAppCall", whatsApp(0), 0, 31 * time.Second, 32 * time.Second, false},
		{"WhatsApp, ring 40 s, answered at 41 s", "Connector/AcceptWhatsAppCall", whatsApp(40 * time.Second), 0, 41 * time.Second, 42 * time.Second, false},
		{"WhatsApp, the caller's 2 s", "Connector/AcceptWhatsAppCall", whatsApp(0), 2 * time.Second, 18 * time.Second, 2 * time.Second, true},
		{"a ring of years is a day", "SIP/TransferSIPParticipant", transfer(200 * 365 * 24 * time.Hour), 0, 5 * time.Minute, 24*time.Hour + 2*time.Second, false},
		{"no call that rings", "Ingress/CreateIngress", plain, 0, time.Second, 30 * time.Second, false},
		{"no call that rings, the caller's 2 s", "Ingress/CreateIngress", plain, 2 * time.Second, 18 * time.Second, 2 * time.Second, true},
		{"rpc of 40 s", "RoomService/PerformRpc", rpc, 0, 41 * time.Second, 42 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				if _, err := client.Room.CreateRoom(background, &livekit.CreateRoomRequest{Name: "r"}); err != nil {
					t.Fatal(err)
				}
				if err := cloud.AddParticipant("r", &livekit.ParticipantInfo{Identity: "p"}); err != nil {
					t.Fatal(err)
				}
				cloud.Region(0).Break(cloudtest.Delay(c.answer), cloudtest.On(c.rpc))
				ctx := background
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				began := time.Now()
				err := c.call(ctx, client)
				took := time.Since(began)
				if c.fails {
					var e *lkrpc.Error
					if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || !e.OutcomeUnknown ||
						took < c.deadline || took > c.deadline+100*time.Millisecond {
						t.Errorf("%v after %v, want the deadline after %v and an unknown outcome", err, took, c.deadline)
					}
				} else if err != nil {
					t.Errorf("%v after %v", err, took)
				}
				calls := 0
				for _, r := range cloud.Requests() {
					if r.RPC != c.rpc {
						continue
					}
					calls++
					ms, _ := strconv.Atoi(r.Header.Get("X-Twirp-Timeout-Ms"))
					if got := time.Duration(ms)*time.Millisecond - 250*time.Millisecond; got > c.want || got < c.want-time.Second {
						t.Errorf("X-Twirp-Timeout-Ms gives %v, want %v", got, c.want)
					}
				}
				if calls != 1 {
					t.Errorf("%d requests, want 1: a phone must not ring twice", calls)
				}
			})
		})
	}
}

// A SIP call that is only placed has 30 s, on servers too where a call has 10.
func TestTimeOfAPlacedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTestClient(t, "wss://sfu.example.com", roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}))
		for want, call := range map[time.Duration]func() error{
			10 * time.Second: func() error { _, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{}); return err },
			30 * time.Second: func() error {
				_, err := client.SIP.CreateSIPParticipant(background, &livekit.CreateSIPParticipantRequest{RoomName: "r", SipTrunkId: "t", SipCallTo: "+1"})
				return err
			},
		} {
			began := time.Now()
			if err := call(); err == nil || time.Since(began) != want {
				t.Errorf("%v after %v, want %v", err, time.Since(began), want)
			}
		}
	})
}
