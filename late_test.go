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
