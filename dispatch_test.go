package lkrpc_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

const (
	createDispatch = "AgentDispatchService/CreateDispatch"
	listDispatch   = "AgentDispatchService/ListDispatch"
	listRooms      = "RoomService/ListRooms"
)

// inCloud runs f in a synctest bubble with a LiveKit Cloud in memory and a client of its project.
func inCloud(t *testing.T, f func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client), opts ...cloudtest.Option) {
	synctest.Test(t, func(t *testing.T) {
		cloud, err := cloudtest.Start(append(opts, cloudtest.InMemory())...)
		if err != nil {
			t.Fatal(err)
		}
		defer cloud.Close()
		client, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, cloud.Secret), lkrpc.WithHTTPTransport(cloud.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		f(t, cloud, client)
	})
}

var support = &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support", Metadata: "m"}

func makeRoom(t *testing.T, client *lkrpc.Client) {
	t.Helper()
	if _, err := client.Room.CreateRoom(background, &livekit.CreateRoomRequest{Name: support.Room}); err != nil {
		t.Fatal(err)
	}
}

// dispatched are the room's dispatches of the agent. A room that was made without agents lists one for unnamed workers too.
func dispatched(cloud *cloudtest.Cloud) []*livekit.AgentDispatch {
	return slices.DeleteFunc(cloud.Dispatches(support.Room), func(d *livekit.AgentDispatch) bool { return d.GetAgentName() != support.AgentName })
}

// wantOne checks that the room has one dispatch of the agent and that it is d.
func wantOne(t *testing.T, cloud *cloudtest.Cloud, d *livekit.AgentDispatch) {
	t.Helper()
	all := dispatched(cloud)
	if len(all) != 1 || all[0].GetId() != d.GetId() || d.GetAgentName() != "support" || d.GetMetadata() != "m" {
		t.Errorf("dispatches %v, want the one that was returned: %v", all, d)
	}
}

func TestEnsureDispatch(t *testing.T) {
	for _, c := range []struct {
		name    string
		exists  bool // the room is there
		spoil   func(cloud *cloudtest.Cloud)
		created bool
	}{
		{"new room", false, nil, true},
		{"room that exists", true, nil, true},
		{"the look-up fails twice", true, func(cloud *cloudtest.Cloud) {
			for _, h := range cloud.Regions() {
				h.Break(cloudtest.Status(500, nil, ""), cloudtest.On(listRooms), cloudtest.Times(1))
			}
		}, true},
		{"the dispatches cannot be listed at first", true, func(cloud *cloudtest.Cloud) {
			for _, h := range cloud.Regions() {
				h.Break(cloudtest.Status(503, nil, ""), cloudtest.On(listDispatch), cloudtest.Times(1))
			}
		}, true},
		{"the reply is lost after the effect", true, func(cloud *cloudtest.Cloud) {
			cloud.Region(0).Break(cloudtest.After(cloudtest.Drop()), cloudtest.On(createDispatch), cloudtest.Times(1))
		}, true},
		{"the request is lost", true, func(cloud *cloudtest.Cloud) {
			cloud.Region(0).Break(cloudtest.Hang(), cloudtest.On(createDispatch), cloudtest.Times(1))
		}, true},
		{"the home region is down", true, func(cloud *cloudtest.Cloud) {
			cloud.Region(0).Break(cloudtest.Status(503, nil, ""), cloudtest.On(cloudtest.API))
		}, true},
	} {
		for _, server := range []struct {
			name string
			opts []cloudtest.Option
		}{{"dedup", nil}, {"no dedup", []cloudtest.Option{cloudtest.WithoutDedup()}}} {
			t.Run(c.name+"/"+server.name, func(t *testing.T) {
				inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
					if c.exists {
						makeRoom(t, client)
					}
					if c.spoil != nil {
						c.spoil(cloud)
					}
					d, created, err := client.EnsureDispatch(background, support)
					if err != nil || created != c.created {
						t.Fatalf("created %v, %v; want created %v", created, err, c.created)
					}
					wantOne(t, cloud, d)
					again, created, err := client.EnsureDispatch(background, support)
					if err != nil || created || again.GetId() != d.GetId() {
						t.Errorf("the second time: %v, created %v, %v; want the first dispatch", again, created, err)
					}
					wantOne(t, cloud, d)
				}, server.opts...)
			})
		}
	}
}

// When nobody can tell whether the agent is there, no agent is sent.
func TestEnsureDispatchCannotTell(t *testing.T) {
	for _, method := range []string{listRooms, listDispatch} {
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			makeRoom(t, client)
			for _, h := range cloud.Regions() {
				h.Break(cloudtest.Status(500, nil, ""), cloudtest.On(method))
			}
			_, created, err := client.EnsureDispatch(background, support)
			var e *lkrpc.Error
			if !errors.Is(err, lkrpc.ErrCannotTell) || !errors.As(err, &e) || created {
				t.Errorf("%s fails: created %v, %v; want ErrCannotTell with an *Error", method, created, err)
			}
			if n := len(dispatched(cloud)); n != 0 {
				t.Errorf("%s fails: %d dispatches were made", method, n)
			}
		})
	}
}

func TestEnsureDispatchRefused(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		for _, req := range []*livekit.CreateAgentDispatchRequest{nil, {Room: "r"}, {AgentName: "a"}} {
			_, _, err := client.EnsureDispatch(background, req)
			wantLocal(t, req.String(), err, "")
		}
		other, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, "another secret, which the cloud does not know"), lkrpc.WithHTTPTransport(cloud.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		_, _, err = other.EnsureDispatch(background, support)
		var e *lkrpc.Error
		if !errors.As(err, &e) || e.Code() != twirp.Unauthenticated || len(calls(cloud)) != 1 {
			t.Errorf("%v after %v, want unauthenticated after one call", err, calls(cloud))
		}
	})
}

// calls are the methods of the requests that arrived; region lists, which are read in the background, are none.
func calls(cloud *cloudtest.Cloud) (methods []string) {
	for _, r := range cloud.Requests() {
		if r.RPC != "" {
			methods = append(methods, r.RPC)
		}
	}
	return methods
}

// Ended and deleted dispatches, and those of another agent or deployment, are not the one that is wanted.
func TestEnsureDispatchLooksClosely(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		ensure := func(req *livekit.CreateAgentDispatchRequest, want bool) *livekit.AgentDispatch {
			t.Helper()
			d, created, err := client.EnsureDispatch(background, req)
			if err != nil || created != want {
				t.Fatalf("created %v, %v; want %v", created, err, want)
			}
			return d
		}
		first := ensure(support, true)
		ensure(&livekit.CreateAgentDispatchRequest{Room: support.Room, AgentName: "other"}, true)
		ensure(&livekit.CreateAgentDispatchRequest{Room: support.Room, AgentName: "support", Deployment: "staging"}, true)
		if err := cloud.SetJob(first.GetId(), livekit.JobStatus_JS_RUNNING, ""); err != nil {
			t.Fatal(err)
		}
		ensure(support, false)
		if err := cloud.SetJob(first.GetId(), livekit.JobStatus_JS_SUCCESS, ""); err != nil {
			t.Fatal(err)
		}
		second := ensure(support, true)
		if _, err := client.AgentDispatch.DeleteDispatch(background, &livekit.DeleteAgentDispatchRequest{Room: support.Room, DispatchId: second.GetId()}); err != nil {
			t.Fatal(err)
		}
		ensure(support, true)
	})
}

func TestEnsureDispatchTogether(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		var mu sync.Mutex
		var wg sync.WaitGroup
		creators, ids := 0, map[string]bool{}
		copies := map[*livekit.AgentDispatch]bool{}
		for range 50 {
			wg.Go(func() {
				d, created, err := client.EnsureDispatch(background, support)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if created {
					creators++
				}
				ids[d.GetId()], copies[d] = true, true
			})
		}
		wg.Wait()
		if creators != 1 || len(ids) != 1 || len(copies) != 50 || len(dispatched(cloud)) != 1 {
			t.Errorf("%d created it, %d ids, %d copies, %d dispatches; want 1, 1, 50, 1", creators, len(ids), len(copies), len(dispatched(cloud)))
		}
	})
}

// A caller's context ends its own wait only; the last one's ends the flight.
func TestEnsureDispatchWaiters(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		cloud.Region(0).Break(cloudtest.Delay(3*time.Second), cloudtest.On(createDispatch))
		short, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, created, err := client.EnsureDispatch(short, support)
			var e *lkrpc.Error
			if !errors.As(err, &e) || e.Code() != twirp.DeadlineExceeded || !errors.Is(err, context.DeadlineExceeded) || created || !e.OutcomeUnknown {
				t.Errorf("the short wait: created %v, %v; want deadline_exceeded with an unknown outcome", created, err)
			}
		})
		wg.Go(func() {
			d, created, err := client.EnsureDispatch(background, support)
			if err != nil || !created {
				t.Errorf("the long wait: created %v, %v", created, err)
			}
			wantOne(t, cloud, d)
		})
		wg.Wait()
	})
}

// A server that is not known to recognise request ids would take a repeated create for another one: it is sent once.
func TestCreateDispatchIsSentOnceElsewhere(t *testing.T) {
	sent := 0
	client := newTestClient(t, "sfu.example.com", roundTripper(func(r *http.Request) (*http.Response, error) {
		sent++
		return nil, errors.New("connection reset")
	}))
	_, err := client.AgentDispatch.CreateDispatch(background, support)
	var e *lkrpc.Error
	if !errors.As(err, &e) || !e.OutcomeUnknown || sent != 1 {
		t.Errorf("%v after %d requests, want one and an unknown outcome", err, sent)
	}
}
