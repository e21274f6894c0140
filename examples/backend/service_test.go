package main

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// The token lets the participant, and nobody else, into the room, and no other, for a few minutes.
func TestToken(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		got := w.mustCall(t, `{"room": "r", "identity": "ann", "agent_name": "sales", "metadata": "m"}`)
		keys := auth.NewSimpleKeyProvider(w.cloud.Key, w.cloud.Secret)
		claims, err := auth.VerifyToken(got.Token, keys)
		if err != nil {
			t.Fatal(err)
		}
		grant := &auth.VideoGrant{RoomJoin: true, Room: "r"}
		if claims.Identity != "ann" || !reflect.DeepEqual(claims.Video, grant) || claims.SIP != nil || claims.Agent != nil {
			t.Errorf("the token is for %v", claims)
		}
		w.wantOne(t, "r", got.DispatchID)
		if d := w.cloud.Dispatches("r")[0]; d.GetAgentName() != "sales" || d.GetMetadata() != "m" || !got.Created {
			t.Errorf("answered %s; the room has %v", got.body, d)
		}
		if got.header.Get("Cache-Control") != "no-store" || len(got.header.Get("X-Request-Id")) < 20 {
			t.Errorf("the headers are %v", got.header)
		}
		const leeway = 2 * time.Minute // more than verifiers have
		<-time.After(tokenLifetime - leeway)
		if _, err := auth.VerifyToken(got.Token, keys); err != nil {
			t.Errorf("before its time is up: %v", err)
		}
		<-time.After(2 * leeway)
		if _, err := auth.VerifyToken(got.Token, keys); !errors.Is(err, auth.ErrTokenExpired) {
			t.Errorf("after its time is up: %v", err)
		}
	})
}

// An Idempotency-Key is the request id of LiveKit, good for one request, as often as that is sent.
func TestIdempotencyKey(t *testing.T) {
	const body = `{"room": "r", "identity": "ann", "metadata": "m"}`
	inBubble(t, func(t *testing.T, w *world) {
		w.makeRoom(t, "r")
		w.cloud.Region(0).Break(cloudtest.After(cloudtest.Drop()), cloudtest.On(createDispatch), cloudtest.Times(1))
		first := w.mustCall(t, body, keyHeader, "k-1")
		if !first.Created || first.header.Get("X-Request-Id") != "k-1" {
			t.Errorf("the first is answered %s with %v", first.body, first.header)
		}
		for _, again := range []string{body, `{"metadata": "m", "agent_name": "support", "identity": "ann", "room": "r"}`} {
			if got := w.mustCall(t, again, keyHeader, "k-1"); got.Created || got.DispatchID != first.DispatchID || got.Token == "" {
				t.Errorf("the retry %s is answered %s", again, got.body)
			}
		}
		w.wantOne(t, "r", first.DispatchID)
		created := 0
		for _, q := range w.cloud.Requests() {
			if q.RPC == createDispatch {
				created++
				if q.RequestID != "k-1" {
					t.Errorf("the request id is %q", q.RequestID)
				}
			}
		}
		if created == 0 {
			t.Error("nothing was sent")
		}

		for _, other := range []string{
			`{"room": "other", "identity": "ann", "metadata": "m"}`, `{"room": "r", "identity": "bob", "metadata": "m"}`,
			`{"room": "r", "identity": "ann", "metadata": "other"}`, `{"room": "r", "identity": "ann", "metadata": "m", "agent_name": "other"}`,
		} {
			got := w.call(t.Context(), other, keyHeader, "k-1")
			if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.Message, keyHeader) || got.Token != "" {
				t.Errorf("%s: status %d, %s", other, got.status, got.body)
			}
		}
		if rooms := w.cloud.Dispatches("other"); rooms != nil {
			t.Errorf("something was dispatched: %v", rooms)
		}
	})
}

// What is no request is told why, and nothing is sent to LiveKit.
func TestBadInput(t *testing.T) {
	const good = `{"room": "r", "identity": "ann"}`
	long := strings.Repeat("x", maxName+1)
	inBubble(t, func(t *testing.T, w *world) {
		for _, test := range []struct {
			body   string
			header []string
			status int
			want   string
		}{
			{``, nil, 400, "JSON"},
			{`[]`, nil, 400, "JSON"},
			{`null`, nil, 400, "room is missing"},
			{good + ` {}`, nil, 400, "follows"},
			{good + ` x`, nil, 400, "invalid character"},
			{`{"room": 7, "identity": "ann"}`, nil, 400, "room"},
			{`{"room": "r", "identity": "ann", "admin": true}`, nil, 400, "admin"},
			{`{"identity": "ann"}`, nil, 400, "room is missing"},
			{`{"room": "r"}`, nil, 400, "identity is missing"},
			{`{"room": " r", "identity": "ann"}`, nil, 400, "room begins or ends"},
			{`{"room": "r", "identity": "ann\n"}`, nil, 400, "identity begins or ends"},
			{`{"room": "r", "identity": "a\u0000n"}`, nil, 400, "cannot be printed"},
			{`{"room": "r", "identity": "a\u202en"}`, nil, 400, "cannot be printed"},
			{"{\"room\": \"r\xff\", \"identity\": \"ann\"}", nil, 400, "room is not UTF-8"},
			{`{"room": "` + long + `", "identity": "ann"}`, nil, 400, "room has 257 bytes; at most 256"},
			{`{"room": "r", "identity": "` + long + `"}`, nil, 400, "identity has 257"},
			{`{"room": "r", "identity": "ann", "agent_name": "` + long + `"}`, nil, 400, "agent_name has 257"},
			{`{"room": "r", "identity": "ann", "metadata": "` + strings.Repeat("x", maxMetadata+1) + `"}`, nil, 400, "metadata has 8193"},
			{`{"room": "` + strings.Repeat("x", maxBody) + `"}`, nil, 413, "larger than 65536"},
			{good, []string{"Content-Type", "text/plain"}, 415, "application/json"},
			{good, []string{keyHeader, ""}, 400, "1 to 128 visible ASCII"},
			{good, []string{keyHeader, "a b"}, 400, "1 to 128 visible ASCII"},
			{good, []string{keyHeader, "schlüssel"}, 400, "1 to 128 visible ASCII"},
			{good, []string{keyHeader, strings.Repeat("k", 129)}, 400, "1 to 128 visible ASCII"},
			{good, []string{keyHeader, "k", keyHeader, "k"}, 400, "2 times"},
		} {
			header := test.header
			if len(header) == 0 || header[0] != "Content-Type" {
				header = append(header, "Content-Type", "application/json")
			}
			got := w.do(t.Context(), "POST", "/calls", test.body, header...)
			if got.status != test.status || !strings.Contains(got.Message, test.want) ||
				got.RequestID != got.header.Get("X-Request-Id") || got.RequestID == "" {
				t.Errorf("%.60s %.60q: status %d, %s; want %d, %q", test.body, test.header, got.status, got.body, test.status, test.want)
			}
		}
		if sent := w.cloud.Requests(); len(sent) > 0 {
			t.Errorf("LiveKit was asked: %v", sent)
		}
		for _, test := range []struct {
			method, path string
			status       int
		}{{"GET", "/calls", 405}, {"GET", "/webhook", 405}, {"POST", "/healthz", 405}, {"GET", "/", 404}, {"GET", "/healthz", 200}} {
			if got := w.do(t.Context(), test.method, test.path, ""); got.status != test.status {
				t.Errorf("%s %s: status %d, want %d", test.method, test.path, got.status, test.status)
			}
		}
		w.mustCall(t, good, "Content-Type", "application/json; charset=utf-8", keyHeader, strings.Repeat("~", 128))
		w.mustCall(t, fmt.Sprintf(`{"room": "%s", "identity": "Ænn ✓", "metadata": "%s"}`, long[1:], strings.Repeat("x", maxMetadata)))
	})
}
