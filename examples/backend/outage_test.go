package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// The home region dies in the middle of twenty requests, in each of the ways that there are. Every caller is answered, and every
// room has one agent, whether or not the server recognises request ids.
func TestHomeRegionDies(t *testing.T) {
	for _, test := range []struct {
		name string
		kill func(*cloudtest.Host)
	}{
		{"process gone", func(h *cloudtest.Host) { h.Refuse() }},
		{"network gone", func(h *cloudtest.Host) { h.BlackHole() }},
		{"frozen", func(h *cloudtest.Host) { h.Freeze(); h.BlackHole() }},
		{"overloaded", func(h *cloudtest.Host) { h.Break(cloudtest.Status(503, nil, "maintenance")) }},
		{"failing", func(h *cloudtest.Host) { h.Break(cloudtest.Status(500, nil, "oops")) }},
		{"answers lost", func(h *cloudtest.Host) { h.Break(cloudtest.After(cloudtest.Drop())) }},
	} {
		for _, before := range []int64{1, 11, 21, 31} { // of its requests; what it dies in the middle of
			t.Run(fmt.Sprintf("%s at request %d", test.name, before), func(t *testing.T) {
				die := func(t *testing.T, w *world) { dieAmidCalls(t, w, before, test.kill) }
				inBubble(t, die)
				inBubble(t, die, cloudtest.WithoutDedup())
			})
		}
	}
}

func dieAmidCalls(t *testing.T, w *world, before int64, kill func(*cloudtest.Host)) {
	w.mustCall(t, `{"room": "earlier", "identity": "ann"}`)
	listed := func(q cloudtest.Request) bool { return q.Path == cloudtest.RegionList }
	if err := w.cloud.Await(t.Context(), listed); err != nil {
		t.Fatal(err)
	}
	for i := range 10 { // the others are made with their agents in them
		w.makeRoom(t, fmt.Sprint("room-", i))
	}
	home := w.cloud.Region(0)
	var requests atomic.Int64
	home.Break(cloudtest.Fault{}, cloudtest.If(func(*http.Request) bool {
		if requests.Add(1) == before {
			kill(home)
		}
		return false
	}))

	replies := make([]reply, 20)
	var callers sync.WaitGroup
	for i := range replies {
		callers.Go(func() { replies[i] = w.call(t.Context(), fmt.Sprintf(`{"room": "room-%d", "identity": "ann"}`, i)) })
	}
	callers.Wait()
	if n := requests.Load(); n < before {
		t.Fatalf("the home region got %d requests and did not die", n)
	}
	for i, got := range replies {
		if got.status != http.StatusOK || got.Token == "" {
			t.Errorf("caller %d: status %d, %s", i, got.status, got.body)
			continue
		}
		w.wantOne(t, fmt.Sprint("room-", i), got.DispatchID)
	}
	if n := w.metric(t, `backend_calls_open`); n != 21 {
		t.Errorf("%v calls are open, want 21", n)
	}
}

// What LiveKit does not do is told to the client in a way that it can act on.
func TestFailures(t *testing.T) {
	everywhere := func(fault cloudtest.Fault, matches ...cloudtest.Match) func(*world) {
		return func(w *world) {
			for _, region := range w.cloud.Regions() {
				region.Break(fault, matches...)
			}
		}
	}
	creation := func(err twirp.Error) func(*world) {
		return everywhere(cloudtest.TwirpError(err), cloudtest.On(createDispatch))
	}
	for _, test := range []struct {
		name       string
		fail       func(*world)
		status     int
		retryAfter string
		unknown    bool
		result     string
	}{
		{"all gone", func(w *world) {
			for _, region := range w.cloud.Regions() {
				region.Refuse()
			}
		}, 503, "2", false, "failed"},
		{"all busy", everywhere(cloudtest.Status(503, http.Header{"Retry-After": {"7"}}, "")), 503, "7", false, "failed"},
		{"all silent", everywhere(cloudtest.Hang()), 504, "2", false, "failed"},
		{"too many requests", creation(twirp.ResourceExhausted.Error("slow down")), 503, "2", false, "failed"},
		{"a creation that answers nothing", everywhere(cloudtest.Hang(), cloudtest.On(createDispatch)), 504, "2", true, "unknown"},
		{"a room name that is refused", creation(twirp.InvalidArgumentError("room", "is odd")), 400, "", false, "failed"},
		{"another key", creation(twirp.Unauthenticated.Error("invalid token")), 502, "", false, "failed"},
		{"a bug", creation(twirp.Aborted.Error("no")), 502, "", false, "failed"},
		{"a key whose dispatch is over", creation(twirp.FailedPrecondition.Error("no")), 409, "", false, "failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.makeRoom(t, "r")
				test.fail(w)
				got := w.call(t.Context(), `{"room": "r", "identity": "ann"}`, keyHeader, "k-1")
				if got.status != test.status || got.header.Get("Retry-After") != test.retryAfter || got.OutcomeUnknown != test.unknown ||
					got.RequestID != "k-1" || got.Message == "" || strings.Contains(got.Message, keyHeader) != (test.unknown || test.status == 409) {
					t.Errorf("status %d, retry after %q, %s", got.status, got.header.Get("Retry-After"), got.body)
				}
				if n := w.metric(t, fmt.Sprintf("backend_dispatches_total{result=%q}", test.result)); n != 1 {
					t.Errorf("%v dispatches are counted as %s, want 1", n, test.result)
				}
				if n := w.metric(t, "backend_calls_open"); n != 0 {
					t.Errorf("%v calls are open", n)
				}
				failures := w.log.records(t, "refused or failed")
				if len(failures) != 1 || failures[0]["http_request_id"] != "k-1" {
					t.Errorf("the log has %v", failures)
				}
				for what, text := range map[string]string{"answer": got.body, "log": w.log.String()} {
					if strings.Contains(text, w.cloud.Secret) || strings.Contains(text, "eyJ") {
						t.Errorf("the %s has a secret: %s", what, text)
					}
				}
				if strings.Contains(got.body, "livekit.cloud") {
					t.Errorf("the answer tells the client of servers: %s", got.body)
				}

				w.cloud.Heal()
				again := w.mustCall(t, `{"room": "r", "identity": "ann"}`, keyHeader, "k-1")
				w.wantOne(t, "r", again.DispatchID)
			})
		})
	}
}

// A client that goes away is not waited for, and is no failure of LiveKit.
func TestClientGone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		w.cloud.Region(0).Break(cloudtest.Hang(), cloudtest.If(func(*http.Request) bool { cancel(); return true }))
		if got := w.call(ctx, `{"room": "r", "identity": "ann"}`); got.status != statusClientGone || got.OutcomeUnknown {
			t.Errorf("status %d, %s", got.status, got.body)
		}
		if n := w.metric(t, `backend_http_requests_total{code="499",route="POST /calls"}`); n != 1 {
			t.Errorf("counted %v times", n)
		}
	})
}

// The metrics say what a call took, and where.
func TestMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cloud.Region(0).Break(cloudtest.Status(503, nil, ""), cloudtest.On(cloudtest.API))
		w.mustCall(t, `{"room": "r", "identity": "ann"}`)
		w.mustCall(t, `{"room": "r", "identity": "bob"}`)
		w.call(t.Context(), `{"room": "", "identity": "ann"}`)
		for _, region := range w.cloud.Regions() {
			region.Break(cloudtest.Status(500, nil, ""), cloudtest.On("SIP/"))
		}
		dial := &livekit.CreateSIPParticipantRequest{SipTrunkId: "ST_1", RoomName: "r"}
		if _, err := w.client.SIP.CreateSIPParticipant(t.Context(), dial); err == nil {
			t.Error("no error")
		}
		const home, next = `host="demo.livekit.cloud"`, `host="demo.frankfurt.production.livekit.cloud"`
		for series, want := range map[string]float64{
			`livekit_attempts_total{` + home + `,method="RoomService/ListRooms",reason="503 Service Unavailable"}`:      1,
			`livekit_attempts_total{` + next + `,method="RoomService/ListRooms",reason="answered"}`:                     2,
			`livekit_calls_total{code="ok",method="RoomService/ListRooms",outcome_unknown="false"}`:                     2,
			`livekit_calls_total{code="ok",method="RoomService/CreateRoom",outcome_unknown="false"}`:                    1,
			`livekit_calls_total{code="unknown",method="SIP/CreateSIPParticipant",outcome_unknown="true"}`:              1,
			`livekit_attempts_total{` + next + `,method="SIP/CreateSIPParticipant",reason="500 Internal Server Error"}`: 1,
			`livekit_call_duration_seconds_count{method="RoomService/ListRooms"}`:                                       2,
			`backend_dispatches_total{result="created"}`:                                                                1,
			`backend_dispatches_total{result="found"}`:                                                                  1,
			`backend_http_requests_total{code="200",route="POST /calls"}`:                                               2,
			`backend_http_requests_total{code="400",route="POST /calls"}`:                                               1,
			`backend_calls_open`: 1,
		} {
			if got := w.metric(t, series); got != want {
				t.Errorf("%s is %v, want %v", series, got, want)
			}
		}
		text := w.do(t.Context(), "GET", "/metrics", "").body
		for _, name := range []string{"go_goroutines", "# HELP livekit_attempts_total", "# TYPE livekit_call_duration_seconds histogram"} {
			if !strings.Contains(text, name) {
				t.Errorf("the metrics have no %s", name)
			}
		}
	})
}

// Each record of a request has its id, those of the LiveKit client too.
func TestLog(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cloud.Region(0).Break(cloudtest.Status(503, nil, ""), cloudtest.On(cloudtest.API))
		w.mustCall(t, `{"room": "r", "identity": "ann"}`, keyHeader, "k-1")
		for msg, component := range map[string]any{"another attempt": "lkrpc", "call": nil, "request": nil} {
			records := w.log.records(t, msg)
			if len(records) == 0 || slices.ContainsFunc(records, func(r map[string]any) bool {
				return r["http_request_id"] != "k-1" || r["component"] != component
			}) {
				t.Errorf("%s: the log has %v", msg, records)
			}
		}
	})
}
