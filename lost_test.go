package lkrpc_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
)

const createRoom = "RoomService/CreateRoom"

// clientOf returns another client of the project, as another process has it, for one of the Cloud's hosts.
func clientOf(t *testing.T, cloud *cloudtest.Cloud, url string, opts ...lkrpc.Option) *lkrpc.Client {
	t.Helper()
	client, err := lkrpc.New(url, auth.APIKey(cloud.Key, cloud.Secret), append(opts, lkrpc.WithHTTPTransport(cloud.Transport()))...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// count tells how many requests of a method arrived, and how many of them had an effect.
func count(cloud *cloudtest.Cloud, rpc string) (requests, effects int) {
	for _, r := range cloud.Requests() {
		if r.RPC == rpc {
			requests++
			if r.Effect {
				effects++
			}
		}
	}
	return requests, effects
}

// The server creates the dispatch, and its reply is lost. Where request ids are recognised the call is sent again and nobody
// notices; elsewhere it is sent once and says that it does not know, and EnsureDispatch looks.
func TestReplyLostAfterTheEffect(t *testing.T) {
	for _, c := range []struct {
		name   string
		host   string // "": the project's
		opts   []lkrpc.Option
		cloud  []cloudtest.Option
		repeat bool // the server recognises request ids, and is known to
	}{
		{"project host", "", nil, nil, true},
		{"foreign host", "sfu.example.com", nil, []cloudtest.Option{cloudtest.WithoutDedup()}, false},
		{"opted-in host", "sfu.example.com", []lkrpc.Option{lkrpc.WithFailover(failover.Hosts("sfu.example.com"))},
			[]cloudtest.Option{cloudtest.WithoutDedup()}, false},
		{"opted-in host with fallbacks", "sfu.example.com", []lkrpc.Option{lkrpc.WithFailover(failover.Hosts("sfu.example.com"),
			failover.Origins("https://eu.sfu.example.com"))}, []cloudtest.Option{cloudtest.WithoutDedup()}, false},
	} {
		for _, loss := range []struct {
			name  string
			fault cloudtest.Fault
		}{{"dropped", cloudtest.After(cloudtest.Drop())}, {"broken off", cloudtest.Truncate()}, {"502", cloudtest.After(cloudtest.Status(502, nil, ""))}} {
			inHost := func(t *testing.T, f func(*testing.T, *cloudtest.Cloud, *lkrpc.Client)) {
				inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
					home := cloud.Region(0)
					if c.host != "" {
						var err, errEU error
						home, err = cloud.AddHost(c.host)
						_, errEU = cloud.AddHost("eu." + c.host)
						if err := errors.Join(err, errEU); err != nil {
							t.Fatal(err)
						}
						client = clientOf(t, cloud, "https://"+c.host, c.opts...)
						defer client.Close()
					}
					makeRoom(t, client)
					home.Break(loss.fault, cloudtest.On(createDispatch), cloudtest.Times(1))
					f(t, cloud, client)
				}, c.cloud...)
			}
			t.Run("CreateDispatch/"+c.name+"/"+loss.name, func(t *testing.T) {
				inHost(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
					d, err := client.AgentDispatch.CreateDispatch(background, support)
					requests, effects := count(cloud, createDispatch)
					var e *lkrpc.Error
					switch {
					case c.repeat:
						if err != nil || requests != 2 || effects != 1 {
							t.Errorf("%v after %d requests with %d effects, want the second answer of one dispatch", err, requests, effects)
						}
						wantOne(t, cloud, d)
					case !errors.As(err, &e) || !e.OutcomeUnknown || requests != 1 || len(dispatched(cloud)) != 1:
						t.Errorf("%v after %d requests, %d dispatches; want one, and an unknown outcome", err, requests, len(dispatched(cloud)))
					}
				})
			})
			t.Run("EnsureDispatch/"+c.name+"/"+loss.name, func(t *testing.T) {
				inHost(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
					d, created, err := client.EnsureDispatch(background, support)
					if err != nil || !created {
						t.Fatalf("created %v, %v; want it created", created, err)
					}
					wantOne(t, cloud, d)
					if requests, _ := count(cloud, createDispatch); requests != 1 {
						t.Errorf("%d requests to create, want one: the look tells the rest", requests)
					}
				})
			})
		}
	}
}

// An agent that somebody else dispatched is returned, and nothing is created.
func TestEnsureDispatchFindsOthers(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		theirs, err := client.AgentDispatch.CreateDispatch(background, support)
		if err != nil {
			t.Fatal(err)
		}
		cloud.Forget()
		d, created, err := client.EnsureDispatch(background, &livekit.CreateAgentDispatchRequest{Room: support.Room, AgentName: support.AgentName, Metadata: "other"})
		if err != nil || created || !proto.Equal(d, theirs) {
			t.Errorf("%v, created %v, %v; want theirs: %v", d, created, err, theirs)
		}
		if effects := cloud.Effects(); len(effects) != 0 {
			t.Errorf("effects %v, want none", effects)
		}
	})
}

// Another process makes the room after this one has seen that there is none.
func TestEnsureDispatchWhenTheRoomComesBetween(t *testing.T) {
	for _, c := range []struct {
		name    string
		between func(*lkrpc.Client) error
	}{
		{"a plain room", func(other *lkrpc.Client) error {
			_, err := other.Room.CreateRoom(background, &livekit.CreateRoomRequest{Name: support.Room})
			return err
		}},
		{"a room with the agent", func(other *lkrpc.Client) error {
			_, _, err := other.EnsureDispatch(background, support)
			return err
		}},
		{"a dispatch that makes the room", func(other *lkrpc.Client) error {
			_, err := other.AgentDispatch.CreateDispatch(background, support)
			return err
		}},
	} {
		for _, server := range []struct {
			name string
			opts []cloudtest.Option
		}{{"dedup", nil}, {"no dedup", []cloudtest.Option{cloudtest.WithoutDedup()}}} {
			t.Run(c.name+"/"+server.name, func(t *testing.T) {
				inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
					other := clientOf(t, cloud, cloud.Region(1).URL()) // past the delay at home
					defer other.Close()
					cloud.Region(0).Break(cloudtest.Delay(2*time.Second), cloudtest.On(createRoom))
					time.AfterFunc(time.Second, func() {
						if rooms, err := other.Room.ListRooms(background, &livekit.ListRoomsRequest{}); err != nil || len(rooms.GetRooms()) != 0 {
							t.Errorf("rooms %v, %v; want none yet", rooms, err)
						}
						if err := c.between(other); err != nil {
							t.Error(err)
						}
					})
					d, _, err := client.EnsureDispatch(background, support)
					if err != nil {
						t.Fatal(err)
					}
					wantOne(t, cloud, d)
				}, server.opts...)
			})
		}
	}
}

// Two processes at once, as the documentation says it goes: a new room is made once, with one agent. In a room that is there both
// look before either creates, and there are two agents; the same request id in both keeps that from happening on LiveKit Cloud.
func TestEnsureDispatchInTwoProcesses(t *testing.T) {
	for _, c := range []struct {
		name  string
		there bool
		key   string
		opts  []cloudtest.Option
		want  int
	}{
		{"new room", false, "", []cloudtest.Option{cloudtest.WithoutDedup()}, 1},
		{"room that is there", true, "", []cloudtest.Option{cloudtest.WithoutDedup()}, 2},
		{"room that is there, on the Cloud", true, "", nil, 2},
		{"room that is there, on the Cloud, with one key", true, "order-4711", nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				other := clientOf(t, cloud, cloud.Region(1).URL())
				defer other.Close()
				if c.there {
					makeRoom(t, client)
				}
				for _, h := range cloud.Regions() {
					h.Break(cloudtest.After(cloudtest.Delay(time.Second)), cloudtest.On(listRooms, listDispatch), cloudtest.For(1500*time.Millisecond))
				}
				ctx := background
				if c.key != "" {
					ctx = lkrpc.WithRequestID(ctx, c.key)
				}
				var wg sync.WaitGroup
				var mu sync.Mutex
				ids := map[string]bool{}
				for _, process := range []*lkrpc.Client{client, other} {
					wg.Go(func() {
						d, _, err := process.EnsureDispatch(ctx, support)
						mu.Lock()
						defer mu.Unlock()
						ids[d.GetId()] = true
						if err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if n := len(dispatched(cloud)); n != c.want || len(ids) != c.want {
					t.Errorf("%d dispatches, and %d were returned; want %d", n, len(ids), c.want)
				}
				later, created, err := client.EnsureDispatch(background, support)
				if err != nil || created || !ids[later.GetId()] {
					t.Errorf("later: %v, created %v, %v; want one of those", later, created, err)
				}
				if _, effects := count(cloud, createRoom); effects != 1 {
					t.Errorf("the room was made %d times", effects)
				}
			}, c.opts...)
		})
	}
}

// The documented way on after ErrNoAgent: a dispatch that came before its worker never gets a job, and ensuring again returns it;
// deleted first, the next one gets its agent.
func TestNoAgentDeleteThenEnsure(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		first := ensured(t, client)
		defer cloud.AddWorker(support.AgentName, time.Second)()
		if _, err := client.WaitForAgent(background, support.Room, first.GetId()); !errors.Is(err, lkrpc.ErrNoAgent) {
			t.Fatalf("%v, want ErrNoAgent", err)
		}
		if again := ensured(t, client); again.GetId() != first.GetId() {
			t.Errorf("ensured again: %v, want the same: %v", again, first)
		}
		if _, err := client.AgentDispatch.DeleteDispatch(background, &livekit.DeleteAgentDispatchRequest{Room: support.Room, DispatchId: first.GetId()}); err != nil {
			t.Fatal(err)
		}
		second := ensured(t, client)
		job, err := client.WaitForAgent(background, support.Room, second.GetId())
		if err != nil || job.GetDispatchId() == first.GetId() {
			t.Errorf("%v, %v; want a job of the second dispatch", job, err)
		}
		wantOne(t, cloud, second)
	})
}

// Look-ups that fail altogether twice, through every region, delay the answer and do not change it.
func TestEnsureDispatchAfterTwoFailedLooks(t *testing.T) {
	for _, method := range []string{listRooms, listDispatch} {
		for _, there := range []bool{false, true} {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				makeRoom(t, client)
				if there {
					ensured(t, client)
				}
				cloud.Forget()
				for _, h := range cloud.Regions() {
					h.Break(cloudtest.Status(500, nil, ""), cloudtest.On(method), cloudtest.Times(2))
				}
				d, created, err := client.EnsureDispatch(background, support)
				if err != nil || created == there {
					t.Fatalf("%s, agent there %v: created %v, %v", method, there, created, err)
				}
				wantOne(t, cloud, d)
				if requests, _ := count(cloud, method); requests != 7 {
					t.Errorf("%d requests for %s, want 2 looks in 3 regions and one that is answered", requests, method)
				}
			})
		}
	}
}

// An agent is there, but no look can tell: a typed error, and no second agent.
func TestEnsureDispatchCannotTellBesideAnAgent(t *testing.T) {
	for _, method := range []string{listRooms, listDispatch} {
		for _, fault := range []cloudtest.Fault{cloudtest.Status(500, nil, ""), cloudtest.Status(404, nil, ""), cloudtest.Hang(),
			cloudtest.Status(200, nil, "<html>")} {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				first := ensured(t, client)
				synctest.Wait()
				cloud.Forget()
				for _, h := range cloud.Regions() {
					h.Break(fault, cloudtest.On(method))
				}
				_, created, err := client.EnsureDispatch(background, support)
				var e *lkrpc.Error
				if !errors.Is(err, lkrpc.ErrCannotTell) || !errors.As(err, &e) || created {
					t.Errorf("%s, %v: created %v, %v; want ErrCannotTell with an *Error", method, fault, created, err)
				}
				wantOne(t, cloud, first)
				if effects := cloud.Effects(); len(effects) != 0 {
					t.Errorf("%s, %v: effects %v, want none", method, fault, effects)
				}
			})
		}
	}
}

// OutcomeUnknown is about what was created, not about the look that failed last.
func TestEnsureDispatchOutcomeUnknown(t *testing.T) {
	fail := func(cloud *cloudtest.Cloud, fault cloudtest.Fault, method string, skip int) {
		for i, h := range cloud.Regions() {
			if i > 0 {
				skip = 0
			}
			h.Break(fault, cloudtest.On(method), cloudtest.Skip(skip))
		}
	}
	for _, c := range []struct {
		name    string
		there   bool // the room
		spoil   func(*cloudtest.Cloud)
		unknown bool
		tells   bool // not ErrCannotTell: calling again would not help
	}{
		{"no look is answered", true, func(cloud *cloudtest.Cloud) { fail(cloud, cloudtest.Status(500, nil, ""), listRooms, 0) }, false, false},
		{"the dispatches cannot be listed", true, func(cloud *cloudtest.Cloud) { fail(cloud, cloudtest.Drop(), listDispatch, 0) }, false, false},
		{"the reply is lost, and then no look is answered", true, func(cloud *cloudtest.Cloud) {
			cloud.Region(0).Break(cloudtest.After(cloudtest.Drop()), cloudtest.On(createDispatch), cloudtest.Times(1))
			fail(cloud, cloudtest.Status(503, nil, ""), listRooms, 1)
		}, true, false},
		{"the reply is lost, and then looks fail whose own outcome is unknown", true, func(cloud *cloudtest.Cloud) {
			cloud.Region(0).Break(cloudtest.After(cloudtest.Drop()), cloudtest.On(createDispatch), cloudtest.Times(1))
			fail(cloud, cloudtest.Status(500, nil, ""), listRooms, 1)
		}, true, false},
		{"the reply is lost, and then the token is refused", true, func(cloud *cloudtest.Cloud) {
			cloud.Region(0).Break(cloudtest.After(cloudtest.Drop()), cloudtest.On(createDispatch), cloudtest.Times(1))
			fail(cloud, cloudtest.Status(401, nil, ""), listRooms, 1)
		}, true, true},
		{"a look is refused", true, func(cloud *cloudtest.Cloud) { fail(cloud, cloudtest.Status(403, nil, ""), listRooms, 0) }, false, true},
		{"the list of dispatches is refused", true, func(cloud *cloudtest.Cloud) { fail(cloud, cloudtest.Status(403, nil, ""), listDispatch, 0) }, false, true},
		{"a look is wrong", true, func(cloud *cloudtest.Cloud) {
			fail(cloud, cloudtest.Status(400, nil, `{"code":"invalid_argument","msg":"m"}`), listRooms, 0)
		}, false, true},
		{"the room is made with its agent, and then no look is answered", false, func(cloud *cloudtest.Cloud) {
			fail(cloud, cloudtest.Status(503, nil, ""), listDispatch, 0)
		}, true, false},
		{"the room is made with its agent, which does not show, and then the creation is refused", false, func(cloud *cloudtest.Cloud) {
			fail(cloud, cloudtest.Status(200, http.Header{"Content-Type": {"application/protobuf"}}, ""), listDispatch, 0)
			fail(cloud, cloudtest.Status(403, nil, ""), createDispatch, 0)
		}, true, true},
		{"the creation is refused", true, func(cloud *cloudtest.Cloud) { fail(cloud, cloudtest.Status(403, nil, ""), createDispatch, 0) }, false, true},
		{"the room is refused", false, func(cloud *cloudtest.Cloud) { fail(cloud, cloudtest.Status(403, nil, ""), createRoom, 0) }, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				if c.there {
					makeRoom(t, client)
				}
				c.spoil(cloud)
				_, created, err := client.EnsureDispatch(background, support)
				var e *lkrpc.Error
				if !errors.As(err, &e) || created || e.OutcomeUnknown != c.unknown || errors.Is(err, lkrpc.ErrCannotTell) == c.tells {
					t.Errorf("created %v, %v; want outcome unknown %v, a definite error %v", created, err, c.unknown, c.tells)
				}
				if strings.Contains(err.Error(), "may have taken effect") != c.unknown {
					t.Errorf("outcome unknown %v, but it reads %v", c.unknown, err)
				}
				if n := len(dispatched(cloud)); (n == 1) != c.unknown || n > 1 {
					t.Errorf("%d dispatches, unknown %v", n, c.unknown)
				}
			})
		})
	}
}

// The server knows a request id from the dispatch that it once made. When that is over, the answer is no agent.
func TestEnsureDispatchWithTheIDOfADeadDispatch(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *cloudtest.Cloud, *lkrpc.Client, *livekit.AgentDispatch){
		"deleted": func(t *testing.T, _ *cloudtest.Cloud, client *lkrpc.Client, d *livekit.AgentDispatch) {
			if _, err := client.AgentDispatch.DeleteDispatch(background, &livekit.DeleteAgentDispatchRequest{Room: support.Room, DispatchId: d.GetId()}); err != nil {
				t.Fatal(err)
			}
		},
		"job ended": func(t *testing.T, cloud *cloudtest.Cloud, _ *lkrpc.Client, d *livekit.AgentDispatch) {
			if err := cloud.SetJob(d.GetId(), livekit.JobStatus_JS_SUCCESS, ""); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				makeRoom(t, client)
				ctx := lkrpc.WithRequestID(background, "call-17-first")
				d, created, err := client.EnsureDispatch(ctx, support)
				if err != nil || !created {
					t.Fatal(d, created, err)
				}
				end(t, cloud, client, d)
				again, created, err := client.EnsureDispatch(ctx, support)
				var e *lkrpc.Error
				if !errors.As(err, &e) || e.Code() != twirp.FailedPrecondition || e.OutcomeUnknown || again != nil || created ||
					!strings.Contains(e.Msg(), "call-17-first") || !strings.Contains(e.Msg(), d.GetId()) {
					t.Errorf("with the same id: %v, %t, %v", again, created, err)
				}
				other, created, err := client.EnsureDispatch(lkrpc.WithRequestID(background, "call-17-second"), support)
				if err != nil || !created || other.GetId() == d.GetId() {
					t.Errorf("with a new id: %v, %t, %v", other, created, err)
				}
			})
		})
	}
}

// A request id of EnsureDispatch is for one room and agent, also where no call beneath it carries the id.
func TestEnsureDispatchKeepsRequestIDsApart(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		ctx := lkrpc.WithRequestID(background, "k-1")
		d, _, err := client.EnsureDispatch(ctx, support)
		if err != nil {
			t.Fatal(err)
		}
		other := proto.CloneOf(support)
		other.Room = "call-18"
		var e *lkrpc.Error
		if _, _, err := client.EnsureDispatch(ctx, other); !errors.As(err, &e) || e.Code() != twirp.InvalidArgument || !strings.Contains(e.Msg(), "k-1") {
			t.Errorf("the id of another room: %v", err)
		}
		if again, created, err := client.EnsureDispatch(ctx, support); err != nil || created || again.GetId() != d.GetId() {
			t.Errorf("the same once more: %v, %t, %v", again, created, err)
		}
	})
}
