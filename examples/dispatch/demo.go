package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// demo breaks a LiveKit Cloud that runs in this process, in four ways, and dispatches an agent each time.
func demo(ctx context.Context, t *trace) int {
	t.say("A LiveKit Cloud with three regions now runs in this program, reached as demo.livekit.cloud.")
	t.say("Each part breaks it, then dispatches an agent by one call of CreateDispatch.")
	for _, part := range []func(context.Context, *stage) error{homeFails, answerLost, homeDead, allDown} {
		if err := onStage(ctx, t, part); err != nil {
			t.bad("FAILED", "this should not happen: "+err.Error())
			return exitFailed
		}
	}
	t.title("To dispatch for real, set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET; -h tells more.")
	return exitOK
}

// stage is a fresh Cloud for one part.
type stage struct {
	*trace
	*cloudtest.Cloud
}

func onStage(ctx context.Context, t *trace, part func(context.Context, *stage) error) error {
	cloud, err := cloudtest.Start()
	if err != nil {
		return err
	}
	defer cloud.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return part(ctx, &stage{t, cloud})
}

// client returns a client as a service would make it, but for the transport, which leads to the stage's Cloud.
func (s *stage) client(h *cloudtest.Host) (*lkrpc.Client, error) {
	return lkrpc.New(h.URL(), auth.APIKey(s.Key, s.Secret),
		lkrpc.WithHTTPTransport(s.Transport()), lkrpc.WithFailover(failover.OnAttempt(s.attempt)))
}

// dispatch makes the call, and checks what the Cloud has afterwards.
func (s *stage) dispatch(ctx context.Context, c *lkrpc.Client) error {
	s.table()
	d, err := c.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"})
	if err != nil {
		return err
	}
	s.dispatched(d)
	made := 0
	for _, e := range s.Effects() {
		if e.RPC == "AgentDispatchService/CreateDispatch" {
			made++
		}
	}
	if made != 1 {
		return fmt.Errorf("the Cloud made %d dispatches", made)
	}
	return nil
}

func homeFails(ctx context.Context, s *stage) error {
	s.title("1. The home region, %s, answers 503.", s.Region(0).RegionName())
	c, err := s.client(s.Region(0))
	if err != nil {
		return err
	}
	defer c.Close()
	s.Region(0).Break(cloudtest.Status(http.StatusServiceUnavailable, nil, "maintenance"), cloudtest.On(cloudtest.API))
	return s.dispatch(ctx, c)
}

func answerLost(ctx context.Context, s *stage) error {
	s.title("2. A request to cloud-api is lost: it makes the dispatch, but the connection breaks before it can answer.")
	c, err := s.client(s.API())
	if err != nil {
		return err
	}
	defer c.Close()
	s.API().Break(cloudtest.After(cloudtest.Drop()), cloudtest.Times(1))
	if err := s.dispatch(ctx, c); err != nil {
		return err
	}
	s.say("      It was made once: both attempts carried the same request id.")
	return nil
}

func homeDead(ctx context.Context, s *stage) error {
	s.title("3. The home region is dead: nothing answers there, not even for the list of the other regions.")
	c, err := s.client(s.Region(0))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := s.goodCall(ctx, c); err != nil {
		return err
	}
	s.Region(0).BlackHole()
	if err := s.Region(0).AwaitDisconnect(ctx); err != nil {
		return err
	}
	s.say("  Then the region dies, and the agent is dispatched:")
	return s.dispatch(ctx, c)
}

func allDown(ctx context.Context, s *stage) error {
	s.title("4. Everything is down.")
	c, err := s.client(s.Region(0))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := s.goodCall(ctx, c); err != nil {
		return err
	}
	for _, h := range s.Regions() {
		h.Refuse()
		if err := h.AwaitDisconnect(ctx); err != nil {
			return err
		}
	}
	s.say("  Then all regions go down, and the agent is dispatched:")
	if err = s.dispatch(ctx, c); err == nil {
		return errors.New("the call succeeded")
	}
	s.failed(err)
	return nil
}

// goodCall makes a call while all is well, after which the client reads the list of regions, ahead of need.
func (s *stage) goodCall(ctx context.Context, c *lkrpc.Client) error {
	s.say("  A call while all is well; after it, the client reads the list of regions in the background:")
	s.table()
	if _, err := c.Room.ListRooms(ctx, &livekit.ListRoomsRequest{}); err != nil {
		return err
	}
	listed := func(q cloudtest.Request) bool { return q.Path == cloudtest.RegionList }
	if err := s.Await(ctx, listed); err != nil {
		return fmt.Errorf("the client did not read the list of regions: %w", err)
	}
	return nil
}
