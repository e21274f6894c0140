package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/lkrpc/lkrpc/testdata/e2e/worker"
	"github.com/lkrpc/lkrpc/testdata/servers"
)

const (
	// jobLimit is how long a job may take to reach its worker: a busy machine's time, not the server's.
	jobLimit = 30 * time.Second
	// showLimit is how long livekit-server may take to list a job: the first after a worker registers comes up to 5 s late.
	showLimit = 15 * time.Second
	pollEvery = 50 * time.Millisecond
)

func newClient(t testing.TB, url string, creds auth.Credentials, opts ...lkrpc.Option) *lkrpc.Client {
	t.Helper()
	c, err := lkrpc.New(url, creds, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// liveKit starts a livekit-server and a client with its key.
func liveKit(t testing.TB, opts ...servers.Option) (servers.LiveKitServer, *lkrpc.Client) {
	t.Helper()
	s := servers.LiveKit(t, opts...)
	return s, newClient(t, s.URL, auth.APIKey(s.Key, s.Secret))
}

func startWorker(t testing.TB, s servers.LiveKitServer, agentName string) *worker.Worker {
	t.Helper()
	return worker.Start(t, s.URL, s.Key, s.Secret, agentName)
}

// receive returns what comes next on a channel.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(jobLimit):
		t.Fatalf("no %s came in %v", what, jobLimit)
		panic("unreachable")
	}
}

// nothing fails the test if a channel holds something.
func nothing[T any](t *testing.T, what string, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Errorf("%s came: %v", what, v)
	default:
	}
}

// eventually repeats a check until it passes.
func eventually(t *testing.T, limit time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || last == nil { // the last check of all fails for want of time
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still not so after %v: %v", limit, last)
		case <-tick.C:
		}
	}
}

// running waits until a dispatch is listed with a job that runs, and returns it.
func running(t *testing.T, c *lkrpc.Client, room, dispatch string) *livekit.Job {
	t.Helper()
	var found *livekit.Job
	eventually(t, showLimit, func(ctx context.Context) error {
		list, err := c.AgentDispatch.ListDispatch(ctx, &livekit.ListAgentDispatchRequest{Room: room, DispatchId: dispatch})
		if err != nil {
			return err
		}
		for _, d := range list.GetAgentDispatches() {
			for _, job := range d.GetState().GetJobs() {
				if d.GetId() == dispatch && job.GetState().GetStatus() == livekit.JobStatus_JS_RUNNING {
					found = job
					return nil
				}
			}
		}
		return fmt.Errorf("dispatch %s has no running job in %v", dispatch, list)
	})
	return found
}
