package cloudtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/twitchtv/twirp"
)

// Every fault is tried on CreateRoom of a room that is not there, so that an effect shows.
func TestFaults(t *testing.T) {
	tests := []struct {
		name   string
		fault  cloudtest.Fault
		recall string // Request.Fault
		status int    // 0: no answer
		body   string // part of it
		cut    bool   // the answer breaks off
		effect bool
	}{
		{"status", cloudtest.Status(503, http.Header{"Retry-After": {"7"}}, "maintenance"), "status 503", 503, "maintenance", false, false},
		{"status without body", cloudtest.Status(520, nil, ""), "status 520", 520, "", false, false},
		{"status after", cloudtest.After(cloudtest.Status(502, nil, "bad gateway")), "after status 502", 502, "bad gateway", false, true},
		{"error", cloudtest.TwirpError(twirp.NotFoundError("no such thing").WithMeta("sip_status_code", "486")), "error not_found", 404, `"sip_status_code":"486"`, false, false},
		{"answer", cloudtest.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(299)
			io.Copy(w, r.Body)
		}), "answer", 299, `{"name":"room"`, false, false},
		{"drop", cloudtest.Drop(), "drop", 0, "", false, false},
		{"drop after", cloudtest.After(cloudtest.Drop()), "after drop", 0, "", false, true},
		{"reset", cloudtest.Reset(), "reset", 0, "", false, false},
		{"nothing", cloudtest.Fault{}, "", 200, "0123456789", false, true},
		{"status that is none", cloudtest.Status(42, nil, ""), "status 500", 500, "status 42", false, false},
		{"truncate", cloudtest.Truncate(), "truncate", 200, `{"sid"`, true, true},
		{"delay", cloudtest.Delay(time.Millisecond), "delay 1ms", 200, "0123456789", false, true},
		{"delay after", cloudtest.After(cloudtest.Delay(time.Millisecond)), "after delay 1ms", 200, "0123456789", false, true},
		{"drip", cloudtest.Drip(time.Microsecond), "drip 1µs", 200, "0123456789", false, true},
		{"flood", cloudtest.Flood(1 << 20), "flood", 200, strings.Repeat(" ", 1<<20), false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inEach(t, func(t *testing.T, u *user) {
				h := u.Region(0)
				b := h.Break(test.fault, cloudtest.Times(1))
				a := u.create(background, h)
				if a.status != test.status || !strings.Contains(a.body, test.body) || (a.err != nil) != (test.cut || test.status == 0) {
					t.Errorf("got %d %.100q, error %v", a.status, a.body, a.err)
				}
				if b.Hits() != 1 || (len(u.Effects()) == 1) != test.effect {
					t.Errorf("%d hits, effects %v", b.Hits(), u.Effects())
				}
				if err := u.Await(background, func(q cloudtest.Request) bool { return true }); err != nil {
					t.Fatal(err)
				}
				q := h.Requests()[0]
				if q.Fault != test.recall || q.Status != test.status || q.Effect != test.effect || test.fault.String() != test.recall {
					t.Errorf("recorded: %+v", q)
				}
				if length, _ := strconv.Atoi(a.header.Get("Content-Length")); test.cut && len(a.body) != (length-1)/2 {
					t.Errorf("%d bytes of %d arrived, want half", len(a.body), length-1)
				}
				if test.name == "status" && a.header.Get("Retry-After") != "7" {
					t.Errorf("the fault's header is missing: %v", a.header)
				}
				u.works(h) // it was used up
			})
		})
	}
}

// What hangs says nothing until the client leaves, and has taken effect or not.
func TestHang(t *testing.T) {
	for effect, fault := range map[int]cloudtest.Fault{0: cloudtest.Hang(), 1: cloudtest.After(cloudtest.Hang())} {
		t.Run(fault.String(), func(t *testing.T) {
			inEach(t, func(t *testing.T, u *user) {
				h := u.Region(0)
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				h.Break(fault, cloudtest.Times(1))
				done := make(chan answer)
				go func() { done <- u.create(ctx, h) }()
				eventually(t, "the request arrives", func() bool { return len(h.Requests()) == 1 && h.Requests()[0].Fault != "" })
				eventually(t, "its effect", func() bool { return len(u.Effects()) == effect })
				select {
				case a := <-done:
					t.Fatalf("it did not hang: %+v", a)
				default:
				}
				cancel()
				if a := <-done; !errors.Is(a.err, context.Canceled) {
					t.Errorf("got %+v", a)
				}
				eventually(t, "the handler ends", func() bool { return h.Requests()[0].Answered })
				u.works(h)
			})
		})
	}
	inBubble(t, func(t *testing.T, u *user) {
		u.Region(0).Break(cloudtest.Hang())
		ctx, cancel := context.WithTimeout(background, time.Hour)
		defer cancel()
		if a := u.create(ctx, u.Region(0)); a.took != time.Hour || len(u.Effects()) != 0 {
			t.Errorf("hung for %v, effects %v", a.took, u.Effects())
		}
	})
}

// On a bubble's clock waits are exact.
func TestWaitsAreExact(t *testing.T) {
	for _, opts := range [][]cloudtest.Option{nil, {cloudtest.HTTP1()}} {
		inBubble(t, func(t *testing.T, u *user) {
			h := u.Region(0)
			u.works(h)
			b := h.Break(cloudtest.Delay(3 * time.Second))
			if a := u.create(background, h); a.took != 3*time.Second || a.status != 200 {
				t.Errorf("delay: %+v", a)
			}
			if a := u.create(background, h, "X-Twirp-Timeout-Ms", "1500"); a.took != 1500*time.Millisecond || a.status != 408 || !strings.Contains(a.body, `"canceled"`) {
				t.Errorf("delay beyond the client's time: %+v", a)
			}
			b.Clear()
			whole := u.create(background, h)
			h.Break(cloudtest.Drip(time.Second))
			if a := u.create(background, h); a.took != time.Duration(len(a.body))*time.Second || a.body != whole.body {
				t.Errorf("drip of %d bytes: %+v", len(a.body), a)
			}
			a := u.post(background, h, "/twirp/livekit.RoomService/DeleteRoom", `{"room":"room"}`, "Content-Type", "application/json")
			if a.body != "{}" || a.took != 2*time.Second {
				t.Errorf("drip of %q: %v", a.body, a.took)
			}
		}, opts...)
	}
}

// A delayed request does not take effect if its client leaves first.
func TestDelayEndsWithTheClient(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		h.Break(cloudtest.Delay(time.Minute))
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		u.create(ctx, h)
		<-time.After(time.Hour)
		if len(u.Effects()) != 0 {
			t.Errorf("effects: %v", u.Effects())
		}
	})
}

// A reset leaves the rest of an HTTP/2 connection alone.
func TestReset(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		u.works(h)
		h.Break(cloudtest.Reset(), cloudtest.Times(1))
		if a := u.create(background, h); a.err == nil {
			t.Errorf("got %+v", a)
		}
		u.works(h)
		want := 2
		if h.Requests()[0].Proto == "HTTP/2.0" {
			want = 1
		}
		if n := len(h.Dials()); n != want {
			t.Errorf("%d dials, want %d", n, want)
		}
	})
}

// A stream without end goes on for as long as somebody reads.
func TestFloodWithoutEnd(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		h.Break(cloudtest.Flood(-1), cloudtest.On(cloudtest.RegionList))
		r, _ := http.NewRequest("GET", h.URL()+cloudtest.RegionList, nil)
		resp, err := u.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.CopyN(io.Discard, resp.Body, 8<<20); err != nil {
			t.Errorf("the stream ended after %d bytes: %v", n, err)
		}
		resp.Body.Close()
		eventually(t, "the handler ends", func() bool { return h.Requests()[0].Answered })
	})
}

// A dropped request takes the connection with it, as a broken network does.
func TestDropTakesTheConnection(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		u.works(h)
		if n := h.Connections(); n != 1 {
			t.Fatalf("%d connections, want 1", n)
		}
		h.Break(cloudtest.Drop(), cloudtest.Times(1))
		u.create(background, h)
		eventually(t, "the connection ends", func() bool { return h.Connections() == 0 })
		u.works(h)
		if n := len(h.Dials()); n < 2 {
			t.Errorf("%d dials: the connection was used again", n)
		}
	})
}
