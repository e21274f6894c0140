package lkrpc_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// A server's "canceled" says that it gave up, and nothing of the caller's context.
func TestEnsureDispatchThroughAServersCanceled(t *testing.T) {
	for _, rpc := range []string{createDispatch, listRooms, listDispatch} {
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			makeRoom(t, client)
			gaveUp := cloudtest.TwirpError(twirp.NewError(twirp.Canceled, "context canceled"))
			cloud.Region(0).Break(cloudtest.After(gaveUp), cloudtest.On(rpc), cloudtest.Times(1))
			d, created, err := client.EnsureDispatch(background, support)
			if err != nil || !created {
				t.Fatalf("%s: created %v, %v", rpc, created, err)
			}
			wantOne(t, cloud, d)
		})
	}
}

// What the server replays for a request id is no success if it is not what was asked for: it is over, or another agent's.
func TestEnsureDispatchIsNotAnsweredByAnother(t *testing.T) {
	key := lkrpc.WithRequestID(background, "key-1")
	for name, spoil := range map[string]func(*testing.T, *cloudtest.Cloud, *lkrpc.Client, string){
		"deleted": func(t *testing.T, _ *cloudtest.Cloud, client *lkrpc.Client, id string) {
			if _, err := client.AgentDispatch.DeleteDispatch(background, &livekit.DeleteAgentDispatchRequest{Room: support.Room, DispatchId: id}); err != nil {
				t.Fatal(err)
			}
		},
		"over": func(t *testing.T, cloud *cloudtest.Cloud, _ *lkrpc.Client, id string) {
			if err := cloud.SetJob(id, livekit.JobStatus_JS_FAILED, "x"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			makeRoom(t, client)
			d, _, err := client.EnsureDispatch(key, support)
			if err != nil {
				t.Fatal(err)
			}
			spoil(t, cloud, client, d.GetId())
			cloud.Region(0).Break(cloudtest.Status(500, nil, ""), cloudtest.On(createDispatch), cloudtest.Times(1))
			_, created, err := client.EnsureDispatch(key, support)
			wantCode(t, name, err, twirp.FailedPrecondition)
			if created {
				t.Errorf("%s: created", name)
			}
		})
	}
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		if _, _, err := client.EnsureDispatch(key, support); err != nil {
			t.Fatal(err)
		}
		other := clientOf(t, cloud, cloud.URL) // which does not know the key
		defer other.Close()
		_, created, err := other.EnsureDispatch(key, &livekit.CreateAgentDispatchRequest{Room: support.Room, AgentName: "sales"})
		wantCode(t, "another agent's", err, twirp.FailedPrecondition)
		if created {
			t.Error("created")
		}
		third := clientOf(t, cloud, cloud.URL)
		defer third.Close()
		_, _, err = third.EnsureDispatch(key, &livekit.CreateAgentDispatchRequest{Room: support.Room, AgentName: support.AgentName, Deployment: "blue"})
		wantCode(t, "another deployment's", err, twirp.FailedPrecondition)
	})
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		empty := cloudtest.Status(200, http.Header{"Content-Type": {"application/protobuf"}}, "")
		cloud.Region(0).Break(cloudtest.After(empty), cloudtest.On(createDispatch), cloudtest.Times(1))
		d, created, err := client.EnsureDispatch(background, support)
		if err != nil || !created {
			t.Fatalf("an empty answer: created %v, %v", created, err)
		}
		wantOne(t, cloud, d)
	})
}

func wantCode(t *testing.T, name string, err error, code twirp.ErrorCode) {
	t.Helper()
	var e *lkrpc.Error
	if !errors.As(err, &e) || e.Code() != code {
		t.Errorf("%s: %v, want %s", name, err, code)
	}
}

// Credentials that have no token for a moment cost a pause, whatever the token is for.
func TestEnsureDispatchWithoutATokenForAMoment(t *testing.T) {
	for missing := 1; missing <= 3; missing++ { // the two looks, and the creation
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			makeRoom(t, client)
			asked := 0
			key := auth.APIKey(cloud.Key, cloud.Secret)
			c, err := lkrpc.New(cloud.URL, tokens(func(ctx context.Context, claims *auth.ClaimGrants) (string, error) {
				if asked++; asked == missing {
					return "", errors.New("the vault is sealed")
				}
				return key.Token(ctx, claims)
			}), lkrpc.WithHTTPTransport(cloud.Transport()))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, created, err := c.EnsureDispatch(background, support); err != nil || !created {
				t.Errorf("token %d is missing: created %v, %v", missing, created, err)
			}
		})
	}
}

// The request is the caller's again when EnsureDispatch has returned, although the flight goes on. The race detector judges.
func TestEnsureDispatchLeavesTheRequestAlone(t *testing.T) {
	client, err := lkrpc.New("https://sfu.example.com", auth.APIKey(testKey, testSecret), lkrpc.WithHTTPTransport(roundTripper(
		func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 200 {
		ctx, cancel := context.WithCancel(background)
		req := &livekit.CreateAgentDispatchRequest{Room: "r", AgentName: "a"}
		go cancel()
		if _, _, err := client.EnsureDispatch(ctx, req); err == nil {
			t.Error("no error")
		}
		req.Metadata = "next"
	}
}
