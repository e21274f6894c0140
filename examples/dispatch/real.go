package main

import (
	"context"
	"fmt"
	"io"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// dispatch sends an agent into a room of the server that the environment names.
func dispatch(ctx context.Context, j job, t *trace, errs io.Writer) int {
	client, err := lkrpc.NewFromEnv(lkrpc.WithFailover(failover.OnAttempt(t.attempt)))
	if err != nil {
		return usage(errs, err.Error())
	}
	defer client.Close()

	t.table()
	d, err := client.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{
		Room: j.room, AgentName: j.agent, Metadata: j.metadata,
	})
	if err != nil {
		t.failed(err)
		return exitFailed
	}
	t.dispatched(d)
	if j.wait == 0 {
		return exitOK
	}

	t.say("Waiting %v for an agent.", j.wait)
	ctx, cancel := context.WithTimeout(ctx, j.wait)
	defer cancel()
	taken, err := client.WaitForAgent(ctx, j.room, d.GetId())
	if err != nil {
		t.bad("FAILED", fmt.Sprint(err))
		return exitFailed
	}
	t.good("OK", fmt.Sprintf("job %s: %s", taken.GetId(), taken.GetState().GetStatus()))
	return exitOK
}
