package cloudtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// Close ends whatever is going on, with every fault at work, and leaves no goroutine behind.
func TestClose(t *testing.T) {
	busy := func(t *testing.T, u *user) {
		h := u.Region(0)
		var calls sync.WaitGroup
		b := h.Break(cloudtest.Hang(), cloudtest.Times(1))
		calls.Go(func() { u.another().create(background, h) })
		eventually(t, "it hangs", func() bool { return b.Hits() == 1 })
		h.Break(cloudtest.Drip(time.Hour), cloudtest.Times(1))
		calls.Go(func() { u.another().create(background, h) })
		// A fault has hit before the request takes effect, and who joins first makes another room than this one.
		eventually(t, "it drips", func() bool { return u.effects("RoomService/CreateRoom") == 1 })
		b = h.Break(cloudtest.Flood(-1), cloudtest.Times(1))
		if r, err := http.NewRequest("GET", h.URL()+"/", nil); err != nil {
			t.Fatal(err)
		} else if resp, err := u.Do(r); err != nil || b.Hits() != 1 {
			t.Fatalf("it does not flood: %v", err)
		} else { // nobody reads, so it waits
			defer resp.Body.Close()
		}
		if resp, err := u.upgrade(u.Region(1)); err != nil || resp.StatusCode != 101 {
			t.Fatalf("%v, %v", resp, err)
		}
		frozen := u.another()
		frozen.works(u.Region(2))
		u.Region(2).Freeze()
		calls.Go(func() { frozen.create(background, u.Region(2)) })
		h.BlackHole(cloudtest.For(time.Hour))
		dials := len(h.Dials())
		calls.Go(func() { u.another().create(background, h) })
		eventually(t, "a dial hangs", func() bool { return len(h.Dials()) > dials })
		u.API().Refuse(cloudtest.Later(time.Hour))

		u.Close()
		u.Close()
		calls.Wait()
		if a := u.another().create(background, h); !errors.Is(a.err, syscall.ECONNREFUSED) {
			t.Errorf("after Close: %+v", a)
		}
		if err := u.Await(background, func(cloudtest.Request) bool { return false }); err != http.ErrServerClosed {
			t.Errorf("Await after Close: %v", err)
		}
		if _, err := u.AddHost("late.example"); err != http.ErrServerClosed {
			t.Errorf("AddHost after Close: %v", err)
		}
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			if m.memory { // the end of the bubble demands that every goroutine in it has ended
				synctest.Test(t, func(t *testing.T) { busy(t, newUser(t, start(t, m.opts...))) })
				return
			}
			before := runtime.NumGoroutine()
			t.Run("busy", func(t *testing.T) { busy(t, newUser(t, start(t, m.opts...))) })
			eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// Close waits for what still handles a request.
func TestCloseWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		b := u.Region(0).Break(cloudtest.Answer(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			<-time.After(time.Minute)
		}))
		go u.create(background, u.Region(0))
		eventually(t, "it is handled", func() bool { return b.Hits() == 1 })
		begin := time.Now()
		if u.Close(); time.Since(begin) != time.Minute {
			t.Errorf("Close took %v", time.Since(begin))
		}
	})
}

func TestAwait(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		listed := func(q cloudtest.Request) bool { return q.Path == cloudtest.RegionList }
		ctx, cancel := context.WithCancel(background)
		done := make(chan error)
		go func() { done <- u.Await(ctx, listed) }()
		u.works(u.Region(0))
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("nothing was listed: %v", err)
		}
		go func() { done <- u.Await(background, listed) }()
		u.list(u.Region(1))
		if err := <-done; err != nil {
			t.Errorf("the list was answered: %v", err)
		}
		if err := u.Await(background, nil); err != nil {
			t.Errorf("any request: %v", err)
		}
		u.Forget()
		if err := u.Await(ctx, nil); err != context.Canceled {
			t.Errorf("any request, but there was none: %v", err)
		}
	})
}

// A request is answered when its answer is out, not before.
func TestAwaitWaits(t *testing.T) {
	for _, opts := range [][]cloudtest.Option{nil, {cloudtest.HTTP1()}} {
		inBubble(t, func(t *testing.T, u *user) {
			u.works(u.Region(0)) // so that the connection is there, and idle
			u.Forget()
			u.Region(0).Break(cloudtest.Delay(2 * time.Second))
			begin := time.Now()
			go u.create(background, u.Region(0))
			if err := u.Await(background, func(cloudtest.Request) bool { return true }); err != nil || time.Since(begin) != 2*time.Second {
				t.Errorf("awaited for %v: %v", time.Since(begin), err)
			}
		}, opts...)
	}
}

// What Await has seen answered arrives, whatever is done to the host right after.
func TestAwaitKeepsAnswers(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		for _, size := range []int{10, 4096 - 9, 4096, 40_000} { // net/http buffers 4 KiB of an answer, and 4 KiB of frames
			body := strings.Repeat("x", size)
			h.Break(cloudtest.Answer(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
			for range 25 {
				u.Forget()
				done := make(chan answer, 1)
				go func() { done <- u.create(background, h) }()
				if err := u.Await(background, nil); err != nil {
					t.Fatal(err)
				}
				cut := h.Refuse()
				if err := h.AwaitDisconnect(background); err != nil { // else the next call may take the dead connection
					t.Fatal(err)
				}
				if a := <-done; a.err != nil || a.body != body {
					t.Errorf("%d bytes: %d arrived, error %v", size, len(a.body), a.err)
				}
				cut.Clear()
			}
			h.Heal()
		}
	})
}

// Many callers, many faults that come and go, and a reader of the record, all at once. It is the race detector that judges; what
// must hold all the same is that each dispatch is made once, and that what worked is in the state.
func TestConcurrentUse(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		const callers, calls = 8, 10
		stop := make(chan struct{})
		var helpers, work sync.WaitGroup
		faults := []cloudtest.Fault{cloudtest.Drop(), cloudtest.After(cloudtest.Drop()), cloudtest.Status(503, nil, ""),
			cloudtest.Truncate(), cloudtest.Delay(time.Microsecond)}
		helpers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				h := u.Region(i % 3)
				b := h.Break(faults[i%len(faults)], cloudtest.Times(1))
				switch i % 7 {
				case 0:
					h.Refuse(cloudtest.Times(1)).Clear()
				case 1:
					h.Freeze().Clear()
				case 2:
					u.Pin(u.Region(0), u.Region(1))
				case 3:
					u.Unpin()
					u.ListRegions()
				case 4:
					u.ListOwnRegions()
				}
				runtime.Gosched()
				b.Clear()
				u.Requests()
				u.Effects()
				u.Dispatches("room")
			}
		})
		var mu sync.Mutex
		made := map[string]bool{}
		for caller := range callers {
			work.Go(func() {
				agents := u.agents(u.Region(caller % 3))
				for call := range calls {
					id := strconv.Itoa(caller) + "-" + strconv.Itoa(call)
					for try := 0; ; try++ {
						d, err := agents.CreateDispatch(withID(t, id), &livekit.CreateAgentDispatchRequest{Room: "room", AgentName: id})
						if err == nil {
							mu.Lock()
							made[d.GetId()] = true
							mu.Unlock()
							break
						}
						if try > 1000 {
							t.Errorf("%s: %v", id, err)
							return
						}
					}
				}
			})
		}
		work.Wait()
		close(stop)
		helpers.Wait()
		named := 0
		for _, d := range u.Dispatches("room") {
			if d.GetAgentName() != "" {
				named++
			}
		}
		if named != callers*calls || len(made) != named || u.effects("AgentDispatchService/CreateDispatch") != named {
			t.Errorf("%d dispatches, %d ids, %d effects, want %d", named, len(made), u.effects("AgentDispatchService/CreateDispatch"), callers*calls)
		}
	})
}

// The engine sees LiveKit Cloud: with nothing but the Cloud's transport it leaves a broken region for the next.
func TestFailoverAppliesItsPolicy(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		ft, err := failover.New(u.Transport())
		if err != nil {
			t.Fatal(err)
		}
		defer ft.Close()
		u.Region(0).Break(cloudtest.Status(503, nil, ""), cloudtest.On(cloudtest.API))
		var trail failover.Trail
		ctx := failover.WithCall(background, &failover.Call{Repeat: failover.Safe, Trail: &trail})
		r, err := http.NewRequestWithContext(ctx, "GET", u.URL+"/twirp/livekit.RoomService/ListRooms", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Method = "POST"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+u.token)
		resp, err := ft.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if len(trail.Attempts) != 2 || trail.Attempts[1].Origin != u.Region(1).URL() {
			t.Errorf("%d, attempts %v", resp.StatusCode, trail.Attempts)
		}
		requests := u.Requests()
		last := requests[len(requests)-1]
		if requests[0].RequestID != trail.RequestID || last.RequestID != trail.RequestID || last.Region != "frankfurt" {
			t.Errorf("recorded: %+v", requests)
		}
	})
}
