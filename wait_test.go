package lkrpc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// ensured dispatches the agent.
func ensured(t *testing.T, client *lkrpc.Client) *livekit.AgentDispatch {
	t.Helper()
	d, _, err := client.EnsureDispatch(background, support)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWaitForAgent(t *testing.T) {
	for _, c := range []struct {
		name   string
		status livekit.JobStatus
		text   string
		after  time.Duration
		want   error
	}{
		{"runs at once", livekit.JobStatus_JS_RUNNING, "", 0, nil},
		{"runs after 20 s", livekit.JobStatus_JS_RUNNING, "", 20 * time.Second, nil},
		{"has succeeded", livekit.JobStatus_JS_SUCCESS, "", time.Second, nil},
		{"has failed", livekit.JobStatus_JS_FAILED, "no GPU left", time.Second, lkrpc.ErrJobFailed},
		{"comes too late", livekit.JobStatus_JS_RUNNING, "", 31 * time.Second, lkrpc.ErrNoAgent},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				d := ensured(t, client)
				timer := time.AfterFunc(c.after, func() {
					if err := cloud.SetJob(d.GetId(), c.status, c.text); err != nil {
						t.Error(err)
					}
				})
				defer timer.Stop()
				began := time.Now()
				job, err := client.WaitForAgent(background, d.GetRoom(), d.GetId())
				took := time.Since(began)
				if !errors.Is(err, c.want) {
					t.Fatalf("%v after %v, want %v", err, took, c.want)
				}
				var none *lkrpc.NoAgentError
				var failed *lkrpc.JobFailedError
				switch {
				case c.want == nil:
					if job.GetState().GetStatus() != c.status || job.GetDispatchId() != d.GetId() || took > c.after+3*time.Second {
						t.Errorf("%v after %v", job, took)
					}
				case errors.As(err, &none):
					if none.Dispatch.GetId() != d.GetId() || took != 30*time.Second || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("dispatch %v after %v, %v", none.Dispatch, took, err)
					}
				case errors.As(err, &failed):
					if !strings.Contains(err.Error(), c.text) || failed.Job.GetState().GetError() != c.text {
						t.Errorf("%v, want it to quote %q", err, c.text)
					}
				}
			})
		})
	}
}

// A failed poll is not an end; the deadline is the caller's where there is one.
func TestWaitForAgentThroughFailures(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		d := ensured(t, client)
		var breaks []*cloudtest.Break
		for _, h := range cloud.Regions() {
			breaks = append(breaks, h.Break(cloudtest.Status(500, nil, "away"), cloudtest.On(listDispatch)))
		}
		ctx, cancel := context.WithTimeout(background, 8*time.Second)
		defer cancel()
		_, err := client.WaitForAgent(ctx, d.GetRoom(), d.GetId())
		var none *lkrpc.NoAgentError
		var e *lkrpc.Error
		if !errors.As(err, &none) || none.Dispatch != nil || !errors.As(err, &e) {
			t.Errorf("%v, want ErrNoAgent with the last poll's *Error", err)
		}
		for _, b := range breaks {
			if b.Hits() < 2 {
				t.Errorf("%d polls reached a failing region, want several", b.Hits())
			}
		}
		time.AfterFunc(5*time.Second, func() {
			for _, b := range breaks {
				b.Clear()
			}
			if err := cloud.SetJob(d.GetId(), livekit.JobStatus_JS_RUNNING, ""); err != nil {
				t.Error(err)
			}
		})
		if _, err := client.WaitForAgent(background, d.GetRoom(), d.GetId()); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}

// What the last look-up met is quoted, whether or not the dispatch was seen before; not if it was answered.
func TestNoAgentErrorQuotesTheLastPoll(t *testing.T) {
	for _, c := range []struct {
		name        string
		begin, last time.Duration // of an outage in the ten seconds of the wait
		fault       cloudtest.Fault
		seen, says  bool
	}{
		{"from the beginning to the end", 0, time.Minute, cloudtest.Status(500, nil, "out of order"), false, true},
		{"from the middle to the end", 3 * time.Second, time.Minute, cloudtest.Status(500, nil, "out of order"), true, true},
		{"over in time", 3 * time.Second, 3 * time.Second, cloudtest.Status(500, nil, "out of order"), true, false},
		{"none", time.Hour, time.Hour, cloudtest.Status(500, nil, "out of order"), true, false},
		{"a hang at the end", 3 * time.Second, time.Minute, cloudtest.Hang(), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				d := ensured(t, client)
				for _, h := range cloud.Regions() {
					h.Break(c.fault, cloudtest.On(listDispatch), cloudtest.Later(c.begin), cloudtest.For(c.last))
				}
				ctx, cancel := context.WithTimeout(background, 10*time.Second)
				defer cancel()
				_, err := client.WaitForAgent(ctx, d.GetRoom(), d.GetId())
				var none *lkrpc.NoAgentError
				var poll *lkrpc.Error
				if !errors.As(err, &none) || !errors.Is(err, lkrpc.ErrNoAgent) || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%v, want ErrNoAgent at the deadline", err)
				}
				if (none.Dispatch != nil) != c.seen || errors.As(err, &poll) != c.says {
					t.Errorf("dispatch %v, error of a poll %v; want seen %v, quoted %v", none.Dispatch, poll, c.seen, c.says)
				}
				if c.says && (poll.Method != "ListDispatch" || !strings.Contains(err.Error(), poll.Error())) {
					t.Errorf("%v does not quote %v", err, poll)
				}
				if c.seen && !strings.Contains(err.Error(), d.GetId()) {
					t.Errorf("%v does not name the dispatch", err)
				}
				if strings.Contains(err.Error(), "out of order") != (c.says && c.fault.String() != cloudtest.Hang().String()) {
					t.Errorf("%v, want the outage quoted: %v", err, c.says)
				}
			})
		})
	}
}

func TestWaitForAgentGone(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		d := ensured(t, client)
		time.AfterFunc(3*time.Second, func() {
			if _, err := client.AgentDispatch.DeleteDispatch(background, &livekit.DeleteAgentDispatchRequest{Room: d.GetRoom(), DispatchId: d.GetId()}); err != nil {
				t.Error(err)
			}
		})
		if _, err := client.WaitForAgent(background, d.GetRoom(), d.GetId()); !errors.Is(err, lkrpc.ErrDispatchGone) {
			t.Errorf("%v, want ErrDispatchGone", err)
		}
		if _, err := client.WaitForAgent(background, d.GetRoom(), "AD_unknown"); !errors.Is(err, lkrpc.ErrDispatchGone) {
			t.Errorf("an id that never was: %v, want ErrDispatchGone", err)
		}
		for _, names := range [][2]string{{"", "AD_x"}, {"r", ""}} {
			_, err := client.WaitForAgent(background, names[0], names[1])
			wantLocal(t, "no name", err, "named")
		}
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(time.Second, cancel)
		other, _, err := client.EnsureDispatch(background, &livekit.CreateAgentDispatchRequest{Room: d.GetRoom(), AgentName: "other"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.WaitForAgent(ctx, d.GetRoom(), other.GetId())
		var e *lkrpc.Error
		if !errors.As(err, &e) || e.Code() != twirp.Canceled || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v, want code canceled", err)
		}
	})
}

// A client that was closed never hears of an agent, which does not mean that there is none.
func TestDispatchOnAClosedClient(t *testing.T) {
	inCloud(t, func(t *testing.T, _ *cloudtest.Cloud, client *lkrpc.Client) {
		client.Close()
		start := time.Now()
		_, err := client.WaitForAgent(background, support.Room, "AD_x")
		_, _, ensured := client.EnsureDispatch(background, support)
		var e *lkrpc.Error
		if errors.Is(err, lkrpc.ErrNoAgent) || !errors.As(err, &e) || !errors.As(ensured, &e) || e.OutcomeUnknown || time.Since(start) > 0 {
			t.Errorf("%v and %v after %v, want an *Error of each at once", err, ensured, time.Since(start))
		}
	})
}

// dispatchList is a service with one dispatch, whose job is in another state at each look; the last state stays.
type dispatchList struct {
	livekit.AgentDispatchService
	states []*livekit.JobState
	asked  int
}

func (l *dispatchList) ListDispatch(context.Context, *livekit.ListAgentDispatchRequest) (*livekit.ListAgentDispatchResponse, error) {
	state := l.states[min(l.asked, len(l.states)-1)]
	l.asked++
	return &livekit.ListAgentDispatchResponse{AgentDispatches: []*livekit.AgentDispatch{{
		Id: "AD_1", Room: support.Room, AgentName: support.AgentName,
		State: &livekit.AgentDispatchState{Jobs: []*livekit.Job{{Id: "AJ_1", DispatchId: "AD_1", State: state}}},
	}}}, nil
}

// A job that failed and is to be tried again has not ended: its dispatch still stands, and waiting for it goes on.
func TestJobThatIsToBeTriedAgain(t *testing.T) {
	retrying := &livekit.JobState{Status: livekit.JobStatus_JS_FAILED, Reason: livekit.JobStateReason_JSR_RETRYING, Error: "crashed"}
	running := &livekit.JobState{Status: livekit.JobStatus_JS_RUNNING}
	failed := &livekit.JobState{Status: livekit.JobStatus_JS_FAILED, Error: "crashed"}
	inCloud(t, func(t *testing.T, _ *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		list := &dispatchList{client.AgentDispatch, []*livekit.JobState{retrying}, 0}
		client.AgentDispatch = list
		if d, created, err := client.EnsureDispatch(background, support); err != nil || created || d.GetId() != "AD_1" {
			t.Errorf("ensured %v, created %t, %v; want the dispatch that is there", d, created, err)
		}
		list.states, list.asked = []*livekit.JobState{retrying, retrying, running}, 0
		if job, err := client.WaitForAgent(background, support.Room, "AD_1"); err != nil || job.GetId() != "AJ_1" || list.asked != 3 {
			t.Errorf("waited for %v, %v in %d polls, want the running job in 3", job, err, list.asked)
		}
		list.states, list.asked = []*livekit.JobState{retrying, failed, running}, 0
		if job, err := client.WaitForAgent(background, support.Room, "AD_1"); !errors.Is(err, lkrpc.ErrJobFailed) || list.asked != 2 {
			t.Errorf("waited for %v, %v in %d polls, want ErrJobFailed in 2", job, err, list.asked)
		}
	})
}

// Credentials that have no token for a moment do not end the wait, nor a look of EnsureDispatch: only what a later token cannot
// mend does.
func TestDispatchThroughFailingCredentials(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		d := ensured(t, client)
		signer, sealed := auth.APIKey(cloud.Key, cloud.Secret), errors.New("vault is sealed")
		asked := 0
		flaky, err := lkrpc.New(cloud.URL, tokens(func(ctx context.Context, g *auth.ClaimGrants) (string, error) {
			switch asked++; asked {
			case 1:
				return "", sealed
			case 2:
				return "", nil
			}
			return signer.Token(ctx, g)
		}), lkrpc.WithHTTPTransport(cloud.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		defer flaky.Close()
		if err := cloud.SetJob(d.GetId(), livekit.JobStatus_JS_RUNNING, ""); err != nil {
			t.Fatal(err)
		}
		if job, err := flaky.WaitForAgent(background, d.GetRoom(), d.GetId()); err != nil || job.GetDispatchId() != d.GetId() || asked != 3 {
			t.Errorf("WaitForAgent: %v, %v after asking for %d tokens, want the job with the third", job, err, asked)
		}
		asked = 0
		if again, created, err := flaky.EnsureDispatch(background, support); err != nil || created || again.GetId() != d.GetId() {
			t.Errorf("EnsureDispatch: %v, created %v, %v; want the dispatch that is there", again, created, err)
		}
		never, err := lkrpc.New(cloud.URL, tokens(func(context.Context, *auth.ClaimGrants) (string, error) { return "", sealed }),
			lkrpc.WithHTTPTransport(cloud.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		defer never.Close()
		if _, err := never.WaitForAgent(background, d.GetRoom(), d.GetId()); !errors.Is(err, lkrpc.ErrNoAgent) || !errors.Is(err, sealed) {
			t.Errorf("credentials that stay without a token: %v, want ErrNoAgent that quotes them", err)
		}
	})
}

// What no token and no server can mend ends the wait at once.
func TestWaitForAgentWithoutHope(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		other, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, "another secret, which the cloud does not know"), lkrpc.WithHTTPTransport(cloud.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		for _, c := range []struct {
			name   string
			client *lkrpc.Client
			room   string
			code   twirp.ErrorCode
		}{
			{"a refused token", other, "r", twirp.Unauthenticated},
			{"a name that is no text", client, "r\xff", twirp.InvalidArgument},
			{"a name too long for a token", client, strings.Repeat("r", 1<<20), twirp.InvalidArgument},
		} {
			began := time.Now()
			_, err := c.client.WaitForAgent(background, c.room, "AD_x")
			var e *lkrpc.Error
			if !errors.As(err, &e) || errors.Is(err, lkrpc.ErrNoAgent) || e.Code() != c.code || time.Since(began) > 0 {
				t.Errorf("%s: %v after %v, want %s at once", c.name, err, time.Since(began), c.code)
			}
		}
	})
}
