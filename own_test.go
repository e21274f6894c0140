package lkrpc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// A look-up that fails between the creation and its answer must not make EnsureDispatch forget whose dispatch it is.
func TestEnsureDispatchKnowsItsOwnRoom(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		for _, h := range cloud.Regions() {
			h.Break(cloudtest.Status(500, nil, ""), cloudtest.On(listDispatch), cloudtest.Times(1))
		}
		d, created, err := client.EnsureDispatch(background, support)
		if err != nil || !created {
			t.Errorf("created %v, %v; want true: nobody else made the room", created, err)
		}
		wantOne(t, cloud, d)
	})
}

// An agent that is done before EnsureDispatch sees it is not sent a second time, but one that was done before it began is.
func TestEnsureDispatchOfAnAgentThatIsDoneAtOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client)
		want  int
	}{
		{"new room", func(_ *testing.T, cloud *cloudtest.Cloud, _ *lkrpc.Client) {
			cloud.Region(0).Break(cloudtest.Delay(time.Second), cloudtest.On(listDispatch), cloudtest.Times(1))
		}, 1},
		{"lost reply", func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			makeRoom(t, client)
			cloud.Region(0).Break(cloudtest.After(cloudtest.Drop()), cloudtest.On(createDispatch), cloudtest.Times(1))
		}, 1},
		{"lost reply, and an earlier job", func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			makeRoom(t, client)
			before, err := client.AgentDispatch.CreateDispatch(background, support)
			if err != nil {
				t.Fatal(err)
			}
			if err := cloud.SetJob(before.GetId(), livekit.JobStatus_JS_SUCCESS, ""); err != nil {
				t.Fatal(err)
			}
			cloud.Region(0).Break(cloudtest.After(cloudtest.Drop()), cloudtest.On(createDispatch), cloudtest.Times(1))
		}, 2},
	} {
		for _, opts := range [][]cloudtest.Option{nil, {cloudtest.WithoutDedup()}} {
			t.Run(c.name, func(t *testing.T) {
				inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
					c.spoil(t, cloud, client)
					timer := time.AfterFunc(100*time.Millisecond, func() {
						for _, d := range dispatched(cloud) {
							cloud.SetJob(d.GetId(), livekit.JobStatus_JS_SUCCESS, "")
						}
					})
					defer timer.Stop()
					d, created, err := client.EnsureDispatch(background, support)
					all := dispatched(cloud)
					last := all[len(all)-1]
					if err != nil || !created || len(all) != c.want || d.GetId() != last.GetId() || len(last.GetState().GetJobs()) != 1 {
						t.Errorf("%v, created %v, %v; dispatches %v, want %d and the last, which is over, as created", d, created, err, all, c.want)
					}
				}, opts...)
			})
		}
	}
}

// What an interceptor changes in one request must not be in the next.
func TestEnsureDispatchWithAnInterceptorThatChangesRequests(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, _ *lkrpc.Client) {
		var sent []string
		prefix := func(next twirp.Method) twirp.Method {
			return func(ctx context.Context, request any) (any, error) {
				if req, ok := request.(*livekit.CreateAgentDispatchRequest); ok {
					req.Metadata += "+"
					sent = append(sent, req.Metadata)
				}
				return next(ctx, request)
			}
		}
		client := clientOf(t, cloud, cloud.URL, lkrpc.WithInterceptors(prefix))
		defer client.Close()
		makeRoom(t, client)
		cloud.Region(0).Break(cloudtest.Drop(), cloudtest.On(createDispatch), cloudtest.Times(1))
		_, created, err := client.EnsureDispatch(background, support)
		if err != nil || !created || !slices.Equal(sent, []string{"m+", "m+"}) || support.Metadata != "m" {
			t.Errorf("created %v, %v; metadata sent %q, want \"m+\" twice", created, err, sent)
		}
	})
}

// A request id that cannot be sent is an error also where the agent is there, or comes with its room.
func TestEnsureDispatchChecksTheRequestID(t *testing.T) {
	rec := &recorder{}
	client := newTestClient(t, "localhost:7880", rec)
	_, _, err := client.EnsureDispatch(lkrpc.WithRequestID(background, "two words"), support)
	wantLocal(t, "a request id with a blank", err, "")
	if n := len(rec.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
