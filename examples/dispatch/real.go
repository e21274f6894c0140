package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// dispatch sees to it that an agent is dispatched to a room of the server that the environment names.
func dispatch(ctx context.Context, j job, t *trace, errs io.Writer) int {
	client, err := lkrpc.NewFromEnv(lkrpc.WithFailover(failover.OnAttempt(t.attemptOf)))
	if err != nil {
		return usage(errs, err.Error())
	}
	defer client.Close()

	t.table()
	d, created, err := client.EnsureDispatch(ctx, &livekit.CreateAgentDispatchRequest{
		Room: j.room, AgentName: j.agent, Metadata: j.metadata,
	})
	if err != nil {
		t.failed(err)
		return exitFailed
	}
	if created {
		t.dispatched(d)
	} else {
		t.good("OK", fmt.Sprintf("dispatch %s of agent %q is in room %q already", d.GetId(), d.GetAgentName(), d.GetRoom()))
	}
	if j.wait == 0 {
		return exitOK
	}

	t.say("Waiting %v for an agent.", j.wait)
	ctx, cancel := context.WithTimeout(ctx, j.wait)
	defer cancel()
	taken, err := client.WaitForAgent(ctx, j.room, d.GetId())
	if err != nil {
		t.bad("FAILED", fmt.Sprint(err))
		if errors.Is(err, lkrpc.ErrNoAgent) { // it would only be found again
			t.say("Deleting the dispatch.")
			_, err = client.AgentDispatch.DeleteDispatch(context.WithoutCancel(ctx), &livekit.DeleteAgentDispatchRequest{
				Room: j.room, DispatchId: d.GetId(),
			})
			if err != nil {
				t.failed(err)
			}
		}
		return exitFailed
	}
	t.good("OK", fmt.Sprintf("job %s: %s", taken.GetId(), taken.GetState().GetStatus()))
	return exitOK
}
