package lkrpc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// ringing are calls that somebody hears.
var ringing = map[string]func(context.Context, *lkrpc.Client) error{
	"SIP/CreateSIPParticipant": func(ctx context.Context, c *lkrpc.Client) error {
		_, err := c.SIP.CreateSIPParticipant(ctx, &livekit.CreateSIPParticipantRequest{SipTrunkId: "ST_1", SipCallTo: "+1", RoomName: "r", WaitUntilAnswered: true})
		return err
	},
	"SIP/TransferSIPParticipant": func(ctx context.Context, c *lkrpc.Client) error {
		_, err := c.SIP.TransferSIPParticipant(ctx, &livekit.TransferSIPParticipantRequest{RoomName: "r", ParticipantIdentity: "p", TransferTo: "tel:+1"})
		return err
	},
}

// A call that a phone rings for is sent again, to the next region, only if it surely did not take effect.
func TestCallsThatRingAreSentOnce(t *testing.T) {
	busy := twirp.NewError(twirp.Unavailable, "the call was not answered").WithMeta("sip_status_code", "486").WithMeta("sip_status", "Busy Here")
	answer := func(f cloudtest.Fault) func(*cloudtest.Host, string) {
		return func(h *cloudtest.Host, rpc string) { h.Break(f, cloudtest.On(rpc)) }
	}
	for _, c := range []struct {
		name     string
		spoil    func(home *cloudtest.Host, rpc string)
		requests int // that reached a region
		ok       bool
		unknown  bool
		sip      int
	}{
		{"read and dropped", answer(cloudtest.Drop()), 1, false, true, 0},
		{"done and dropped", answer(cloudtest.After(cloudtest.Drop())), 1, false, true, 0},
		{"read and hung", answer(cloudtest.Hang()), 1, false, true, 0},
		{"500", answer(cloudtest.Status(500, nil, "")), 1, false, true, 0},
		{"502", answer(cloudtest.Status(502, nil, "")), 1, false, true, 0},
		{"504", answer(cloudtest.Status(504, nil, "")), 1, false, true, 0},
		{"404", answer(cloudtest.Status(404, nil, "")), 1, false, false, 0},
		{"busy", answer(cloudtest.TwirpError(busy)), 1, false, false, 486},
		{"503", answer(cloudtest.Status(503, nil, "")), 2, true, false, 0},
		{"dial refused", func(h *cloudtest.Host, _ string) { h.Refuse() }, 1, true, false, 0},
		{"no route", func(h *cloudtest.Host, _ string) { h.BlackHole() }, 1, true, false, 0},
		{"no name", func(h *cloudtest.Host, _ string) { h.Unresolve(); h.Refuse() }, 1, true, false, 0},
	} {
		for rpc, call := range ringing {
			t.Run(rpc+"/"+c.name, func(t *testing.T) {
				inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
					if err := cloud.AddParticipant("r", &livekit.ParticipantInfo{Identity: "p"}); err != nil {
						t.Fatal(err)
					}
					if _, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait() // until the region list is read
					c.spoil(cloud.Region(0), rpc)
					synctest.Wait()
					err := call(background, client)
					var e *lkrpc.Error
					if (err == nil) != c.ok || errors.As(err, &e) && e.OutcomeUnknown != c.unknown {
						t.Errorf("%v, want success %v, outcome unknown %v", err, c.ok, c.unknown)
					}
					if code, reason, ok := lkrpc.SIPStatus(err); ok != (c.sip != 0) || code != c.sip || ok && reason != "Busy Here" {
						t.Errorf("SIP status %d %q %v, want %d", code, reason, ok, c.sip)
					}
					requests, effects := count(cloud, rpc)
					if requests != c.requests || effects > 1 || c.ok && effects != 1 {
						t.Errorf("%d requests with %d effects, want %d", requests, effects, c.requests)
					}
					if last := cloud.Requests()[len(cloud.Requests())-1]; c.ok && last.Host != cloud.Region(1).Name() {
						t.Errorf("the last request went to %s, want the next region", last.Host)
					}
				})
			})
		}
	}
}
