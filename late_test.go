package lkrpc_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// A proxy gives up while the server is still at work on the creation. A server that would not know the request id again makes
// two agents of a creation that comes again before the first is done.
func TestLateEffect(t *testing.T) {
	const host = "sfu.example.com"
	answers := map[string]func(http.ResponseWriter){
		"504":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusGatewayTimeout) },
		"dropped": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	}
	for name, giveUp := range answers {
		for _, late := range []time.Duration{500 * time.Millisecond, 2100 * time.Millisecond, 4 * time.Second, 5200 * time.Millisecond, -1} {
			for _, opts := range [][]lkrpc.Option{nil, {lkrpc.WithFailover(failover.Hosts(host))}} {
				t.Run(fmt.Sprintf("%s/%v/%d", name, late, len(opts)), func(t *testing.T) {
					inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, slow *lkrpc.Client) {
						home, err := cloud.AddHost(host)
						if err != nil {
							t.Fatal(err)
						}
						client := clientOf(t, cloud, "https://"+host, opts...)
						defer client.Close()
						makeRoom(t, client)
						home.Break(cloudtest.Answer(func(w http.ResponseWriter, r *http.Request) {
							if late >= 0 {
								time.AfterFunc(late, func() {
									if _, err := slow.AgentDispatch.CreateDispatch(background, support); err != nil {
										t.Error(err)
									}
								})
							}
							giveUp(w)
						}), cloudtest.On(createDispatch), cloudtest.Times(1))

						began := time.Now()
						d, created, err := client.EnsureDispatch(background, support)
						if err != nil || !created {
							t.Fatalf("created %v, %v; want it created", created, err)
						}
						if took := time.Since(began); late >= 0 && took > late+time.Second {
							t.Errorf("it took %v, want it seen soon after %v", took, late)
						}
						<-time.After(10 * time.Second) // for what may still come
						wantOne(t, cloud, d)
					})
				})
			}
		}
	}
}

// LiveKit Cloud knows the request id again: there is nothing to wait for.
func TestLateEffectOnTheCloud(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		makeRoom(t, client)
		cloud.Region(0).Break(cloudtest.Status(504, nil, ""), cloudtest.On(createDispatch), cloudtest.Times(1))
		began := time.Now()
		d, created, err := client.EnsureDispatch(background, support)
		if err != nil || !created {
			t.Fatalf("created %v, %v; want it created", created, err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v, want it sent again after the looks", took)
		}
		wantOne(t, cloud, d)
	})
}

// A room that has ended is known by the list of rooms alone: a look at its dispatches is answered "no response from servers".
func TestWaitForAgentInARoomThatEnded(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		d := ensured(t, client)
		time.AfterFunc(3*time.Second, func() {
			if _, err := client.Room.DeleteRoom(background, &livekit.DeleteRoomRequest{Room: d.GetRoom()}); err != nil {
				t.Error(err)
			}
		})
		wantGone(t, client, d.GetRoom(), d.GetId())
		wantGone(t, client, "never-was", "AD_unknown")
	})
}

func wantGone(t *testing.T, client *lkrpc.Client, room, id string) {
	t.Helper()
	began := time.Now()
	_, err := client.WaitForAgent(background, room, id)
	if took := time.Since(began); !errors.Is(err, lkrpc.ErrDispatchGone) || took > 20*time.Second {
		t.Errorf("%s in %s: %v after %v, want ErrDispatchGone before the time is up", id, room, err, took)
	}
}

// A room that is deleted while a creation of unknown outcome is still at work is made anew only after that: what comes late would land
// in the new room, beside its agent.
func TestRoomDeletedWhileACreationIsLate(t *testing.T) {
	for _, host := range []string{"", "sfu.example.com"} {
		var opts []cloudtest.Option
		if host != "" {
			opts = append(opts, cloudtest.WithoutDedup())
		}
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			other := clientOf(t, cloud, cloud.Region(1).URL())
			defer other.Close()
			home := cloud.Region(0)
			if host != "" {
				home, client = hostOf(t, cloud, host)
				defer client.Close()
			}
			makeRoom(t, other)
			home.Break(cloudtest.Answer(func(w http.ResponseWriter, r *http.Request) {
				ctx := lkrpc.WithRequestID(background, r.Header.Get("X-Livekit-Request-Id"))
				time.AfterFunc(200*time.Millisecond, func() {
					if _, err := other.Room.DeleteRoom(background, &livekit.DeleteRoomRequest{Room: support.Room}); err != nil {
						t.Error(err)
					}
				})
				time.AfterFunc(3*time.Second, func() { other.AgentDispatch.CreateDispatch(ctx, support) })
				w.WriteHeader(http.StatusBadGateway)
			}), cloudtest.On(createDispatch), cloudtest.Times(1))
			_, created, err := client.EnsureDispatch(background, support)
			<-time.After(10 * time.Second)
			if n := len(dispatched(cloud)); n != 1 || err != nil {
				t.Errorf("host %q: created %v, %v, and there are %d agents", host, created, err, n)
			}
		}, opts...)
	}
}

// hostOf adds a host that is not LiveKit's, and returns a client of it.
func hostOf(t *testing.T, cloud *cloudtest.Cloud, name string) (*cloudtest.Host, *lkrpc.Client) {
	t.Helper()
	h, err := cloud.AddHost(name)
	if err != nil {
		t.Fatal(err)
	}
	return h, clientOf(t, cloud, h.URL())
}

// No id makes a CreateDispatch the same as the agent of a CreateRoom whose outcome is unknown, on the Cloud neither.
func TestRoomWhoseAgentComesLate(t *testing.T) {
	for _, host := range []string{"", "sfu.example.com"} {
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			regions := cloud.Regions()
			_, other := hostOf(t, cloud, "back.example.com")
			defer other.Close()
			if host != "" {
				var home *cloudtest.Host
				home, client = hostOf(t, cloud, host)
				defer client.Close()
				regions = append(regions, home)
			}
			for _, h := range regions {
				h.Break(cloudtest.Status(http.StatusBadGateway, nil, ""), cloudtest.On(createRoom))
			}
			time.AfterFunc(700*time.Millisecond, func() {
				room := &livekit.CreateRoomRequest{Name: support.Room, Agents: []*livekit.RoomAgentDispatch{{AgentName: "another"}}}
				if _, err := other.Room.CreateRoom(background, room); err != nil {
					t.Error(err)
				}
			})
			time.AfterFunc(4*time.Second, func() {
				if _, err := other.AgentDispatch.CreateDispatch(background, support); err != nil {
					t.Error(err)
				}
			})
			_, created, err := client.EnsureDispatch(background, support)
			<-time.After(10 * time.Second)
			if n := len(dispatched(cloud)); n != 1 || err != nil {
				t.Errorf("host %q: created %v, %v, and there are %d agents", host, created, err, n)
			}
		})
	}
}

// Who calls again at once, as ErrCannotTell says, finds what came of the creation before.
func TestCallingAgainWhileACreationIsLate(t *testing.T) {
	for _, host := range []string{"", "sfu.example.com"} {
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			_, other := hostOf(t, cloud, "back.example.com")
			defer other.Close()
			hosts := cloud.Regions()
			if host != "" {
				var home *cloudtest.Host
				home, client = hostOf(t, cloud, host)
				defer client.Close()
				hosts = []*cloudtest.Host{home}
			}
			makeRoom(t, other)
			var down []*cloudtest.Break
			hosts[0].Break(cloudtest.Answer(func(w http.ResponseWriter, r *http.Request) {
				ctx := lkrpc.WithRequestID(background, r.Header.Get("X-Livekit-Request-Id"))
				time.AfterFunc(5*time.Second, func() { other.AgentDispatch.CreateDispatch(ctx, support) })
				for _, h := range hosts {
					down = append(down, h.Break(cloudtest.Status(500, nil, ""), cloudtest.On(listRooms)))
				}
				w.WriteHeader(http.StatusGatewayTimeout)
			}), cloudtest.On(createDispatch), cloudtest.Times(1))
			_, _, err := client.EnsureDispatch(background, support)
			if !errors.Is(err, lkrpc.ErrCannotTell) {
				t.Fatal(err)
			}
			for _, b := range down {
				b.Clear()
			}
			d, _, err := client.EnsureDispatch(background, support)
			<-time.After(15 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			wantOne(t, cloud, d)
		})
	}
}

// A request that is lost takes one poll, not the wait.
func TestWaitForAgentWithALostPoll(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, _ *lkrpc.Client) {
		home, client := hostOf(t, cloud, "sfu.example.com")
		defer client.Close()
		defer cloud.AddWorker(support.AgentName, time.Second)()
		d := ensured(t, client)
		home.Break(cloudtest.Hang(), cloudtest.On(listDispatch), cloudtest.Times(1))
		if job, err := client.WaitForAgent(background, d.GetRoom(), d.GetId()); err != nil {
			t.Errorf("%v, %v; the job runs since the first second", job, err)
		}
	})
}

// A dispatch that does not show for a moment is not gone.
func TestWaitForAgentBeforeTheDispatchShows(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		defer cloud.AddWorker(support.AgentName, 100*time.Millisecond)()
		d := ensured(t, client)
		for _, h := range cloud.Regions() {
			h.Break(cloudtest.Status(200, http.Header{"Content-Type": {"application/protobuf"}}, ""), cloudtest.On(listDispatch), cloudtest.For(1500*time.Millisecond))
		}
		if job, err := client.WaitForAgent(background, d.GetRoom(), d.GetId()); err != nil {
			t.Errorf("%v, %v", job, err)
		}
	})
}
