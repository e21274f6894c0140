package lkrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJ2aWRlbyI6e319.c2lnbmF0dXJl"

// What an answer that is no success is turned into.
func TestServerErrors(t *testing.T) {
	for _, c := range []struct {
		name       string
		status     int
		kind, body string
		code       twirp.ErrorCode
		says       string
		unknown    bool
		header     http.Header
		retryAfter time.Duration
		metaKey    string
		metaValue  string
	}{
		{name: "twirp", status: 404, kind: "application/json", body: `{"code":"not_found","msg":"no such room","meta":{"room":"r"}}`,
			code: twirp.NotFound, says: "no such room", metaKey: "room", metaValue: "r"},
		{name: "a server's canceled", status: 408, kind: "application/json", body: `{"code":"canceled","msg":"gave up"}`,
			code: twirp.Canceled, says: "gave up", unknown: true},
		{name: "an edge's 503", status: 503, kind: "text/plain", body: "upstream is away", header: http.Header{"Retry-After": {"120"}},
			code: twirp.Unavailable, says: "upstream is away", retryAfter: 2 * time.Minute},
		{name: "429", status: 429, kind: "text/plain", body: "slow down", header: http.Header{"Retry-After": {"7"}},
			code: twirp.ResourceExhausted, says: "slow down", retryAfter: 7 * time.Second},
		{name: "a CDN's 520", status: 520, kind: "text/html", body: "<html>unknown</html>", code: twirp.Unavailable, says: "520", unknown: true},
		{name: "a CDN's 521", status: 521, kind: "text/html", body: "<html>down</html>", code: twirp.Unavailable, says: "521"},
		{name: "a CDN's 522", status: 522, kind: "text/html", body: "<html>no connection</html>", code: twirp.Unavailable, says: "522"},
		{name: "a CDN's 523", status: 523, kind: "text/html", body: "<html>no route</html>", code: twirp.Unavailable, says: "523"},
		{name: "a CDN's 524", status: 524, kind: "text/html", body: "<html>slow</html>", code: twirp.Unavailable, says: "524", unknown: true},
		{name: "a gateway's JSON", status: 403, kind: "application/json", body: `{"message":"denied"}`, code: twirp.PermissionDenied, says: "denied"},
		{name: "JSON of another kind", status: 500, kind: "application/json", body: `[1,2]`, code: twirp.Unknown, says: "[1,2]", unknown: true},
		{name: "an echoed token", status: 401, kind: "text/plain", body: "bad token " + jwt, code: twirp.Unauthenticated, says: "bad token [token]"},
		{name: "a token in the metadata", status: 401, kind: "application/json", body: `{"code":"unauthenticated","msg":"` + jwt + `","meta":{"t":"` + jwt + `"}}`,
			code: twirp.Unauthenticated, says: "[token]", metaKey: "t", metaValue: "[token]"},
		{name: "metadata that is no text", status: 400, kind: "application/json", body: `{"code":"invalid_argument","msg":"m","meta":{"n":3}}`,
			code: twirp.InvalidArgument, says: "m", metaKey: "n", metaValue: "3"},
		{name: "200 that is no protobuf", status: 200, kind: "text/html; charset=utf-8", body: "<html>welcome</html>",
			code: twirp.Internal, says: "status 200 with type \"text/html", unknown: true},
		{name: "200 that does not decode", status: 200, kind: "application/protobuf", body: "\xff\xff\xff",
			code: twirp.Internal, says: "status 200", unknown: true},
		{name: "redirect", status: 302, kind: "text/plain", header: http.Header{"Location": {"https://elsewhere.example.com/login?token=" + jwt}},
			code: twirp.Unavailable, says: "https://elsewhere.example.com"},
		{name: "a long text", status: 500, kind: "text/plain", body: strings.Repeat("long ", 1000), code: twirp.Unknown, says: "long long", unknown: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) {
				resp := answer(r, c.status, c.kind, "")
				for k, v := range c.header {
					resp.Header[k] = v
				}
				resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(c.body)), int64(len(c.body))
				return resp, nil
			}))
			_, err := client.AgentDispatch.CreateDispatch(background, &livekit.CreateAgentDispatchRequest{Room: "r", AgentName: "a"})
			var e *lkrpc.Error
			if !errors.As(err, &e) {
				t.Fatalf("%T %v, want an *Error", err, err)
			}
			if e.Code() != c.code || !strings.Contains(e.Msg(), c.says) {
				t.Errorf("code %s, message %q; want %s that says %q", e.Code(), e.Msg(), c.code, c.says)
			}
			if e.HTTPStatus != c.status || e.OutcomeUnknown != c.unknown || e.RetryAfter != c.retryAfter {
				t.Errorf("status %d, outcome unknown %v, retry after %v; want %d, %v, %v",
					e.HTTPStatus, e.OutcomeUnknown, e.RetryAfter, c.status, c.unknown, c.retryAfter)
			}
			if c.metaKey != "" && e.Meta(c.metaKey) != c.metaValue {
				t.Errorf("metadata %v, want %s=%s", e.MetaMap(), c.metaKey, c.metaValue)
			}
			if e.Service != "AgentDispatchService" || e.Method != "CreateDispatch" || e.RequestID == "" || len(e.Attempts) != 1 {
				t.Errorf("%s/%s, request id %q, %d attempts", e.Service, e.Method, e.RequestID, len(e.Attempts))
			}
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v is a context error, but no context ended", err)
			}
			for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%v", e.MetaMap())} {
				if strings.Contains(text, "eyJ") || strings.Contains(text, testSecret) {
					t.Errorf("a token is shown: %s", text)
				}
				if len(text) > 1000 {
					t.Errorf("the text has %d bytes", len(text))
				}
			}
		})
	}
}

func TestTransportErrors(t *testing.T) {
	broken := &net.OpError{Op: "read", Err: errors.New("connection reset; Authorization: Bearer " + jwt)}
	client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) { return nil, broken }))
	_, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{})
	var e *lkrpc.Error
	if !errors.As(err, &e) || e.Code() != twirp.Unavailable || e.HTTPStatus != 0 || !errors.Is(err, error(broken)) {
		t.Errorf("%v, want unavailable with the transport's error as its cause", err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v", err, err), "eyJ") {
		t.Errorf("a token is shown: %v", err)
	}
}

func TestContextErrors(t *testing.T) {
	client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}))
	cancelled, cancel := context.WithCancel(background)
	cancel()
	late, cancel := context.WithTimeout(background, time.Nanosecond)
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		code twirp.ErrorCode
		is   error
	}{{cancelled, twirp.Canceled, context.Canceled}, {late, twirp.DeadlineExceeded, context.DeadlineExceeded}} {
		_, err := client.Room.ListRooms(c.ctx, &livekit.ListRoomsRequest{})
		var e *lkrpc.Error
		if !errors.As(err, &e) || e.Code() != c.code || !errors.Is(err, c.is) {
			t.Errorf("%v, want %s that is %v", err, c.code, c.is)
		}
	}
}

func TestSIPStatus(t *testing.T) {
	for _, c := range []struct {
		meta   map[string]string
		code   int
		reason string
		ok     bool
	}{
		{map[string]string{"sip_status_code": "486", "sip_status": "Busy Here"}, 486, "Busy Here", true},
		{map[string]string{"sip_status_code": "603"}, 603, "", true},
		{map[string]string{"sip_status": "Busy Here"}, 0, "", false},
		{map[string]string{"sip_status_code": "busy"}, 0, "", false},
		{map[string]string{"sip_status_code": "42"}, 0, "", false},
		{map[string]string{"sip_status_code": "+486"}, 0, "", false},
		{map[string]string{"sip_status_code": "0486"}, 0, "", false},
		{nil, 0, "", false},
	} {
		err := twirp.NewError(twirp.Unavailable, "call failed")
		for k, v := range c.meta {
			err = err.WithMeta(k, v)
		}
		code, reason, ok := lkrpc.SIPStatus(fmt.Errorf("dialling: %w", err))
		if code != c.code || reason != c.reason || ok != c.ok {
			t.Errorf("%v: %d %q %v, want %d %q %v", c.meta, code, reason, ok, c.code, c.reason, c.ok)
		}
	}
	for _, err := range []error{nil, errors.New("x"), (*lkrpc.Error)(nil)} {
		if _, _, ok := lkrpc.SIPStatus(err); ok {
			t.Errorf("%T has a SIP status", err)
		}
	}
}

func TestErrorWithMeta(t *testing.T) {
	client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) { return answer(r, 404, "text/plain", ""), nil }))
	_, err := client.Room.DeleteRoom(background, &livekit.DeleteRoomRequest{Room: "r"})
	e := err.(*lkrpc.Error)
	more := e.WithMeta("k", "v")
	if more.Meta("k") != "v" || e.Meta("k") != "" {
		t.Errorf("WithMeta: %q on the copy, %q on the original", more.Meta("k"), e.Meta("k"))
	}
	more.MetaMap()["k"] = "changed"
	if more.Meta("k") != "v" {
		t.Error("MetaMap gave the map itself")
	}
}

// What a proxy, a certificate, a token service or a server wrote into an error can do nothing to a terminal or a log, is not
// endless, and does not hold the call's token, of whatever form that is.
func TestTextsOfOthersInErrors(t *testing.T) {
	const token = "sesame-0123456789"
	foul := "no\n\x1b[31mway " + token + strings.Repeat(" and on", 1000)
	for name, c := range map[string]struct {
		token func(context.Context, *auth.ClaimGrants) (string, error)
		rt    roundTripper
	}{
		"transport": {
			func(context.Context, *auth.ClaimGrants) (string, error) { return token, nil },
			func(*http.Request) (*http.Response, error) {
				return nil, errors.New(strings.ReplaceAll(foul, token, ""))
			},
		},
		"credentials": {
			func(context.Context, *auth.ClaimGrants) (string, error) {
				return "", errors.New(strings.ReplaceAll(foul, token, ""))
			},
			nil,
		},
		"server": {
			func(context.Context, *auth.ClaimGrants) (string, error) { return token, nil },
			func(r *http.Request) (*http.Response, error) {
				resp := answer(r, 401, "application/json", "")
				text, _ := json.Marshal(map[string]any{"code": "unauthenticated", "msg": foul, "meta": map[string]string{"k": foul}})
				resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(string(text))), int64(len(text))
				return resp, nil
			},
		},
	} {
		client, err := lkrpc.New("localhost:7880", tokens(c.token), lkrpc.WithHTTPTransport(c.rt))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Room.ListRooms(background, &livekit.ListRoomsRequest{})
		client.Close()
		var e *lkrpc.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg(), "way") {
			t.Fatalf("%s: %v, want what was said", name, err)
		}
		for _, text := range []string{e.Msg(), e.Meta("k"), e.Error()} {
			if strings.ContainsAny(text, "\n\x1b") || strings.Contains(text, token) || len(text) > 1500 {
				t.Errorf("%s: %d bytes: %q", name, len(text), text)
			}
		}
	}
}

// A call that only reads has no effect to speak of, whatever became of it.
func TestErrorOfACallThatReads(t *testing.T) {
	client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) { return answer(r, 500, "text/plain", ""), nil }))
	for _, c := range []struct {
		call  func() error
		reads bool
	}{
		{func() error { _, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{}); return err }, true},
		{func() error {
			_, err := client.Room.GetParticipant(background, &livekit.RoomParticipantIdentity{Room: "r", Identity: "p"})
			return err
		}, true},
		{func() error {
			_, err := client.Room.DeleteRoom(background, &livekit.DeleteRoomRequest{Room: "r"})
			return err
		}, false},
		{func() error {
			_, err := client.Room.CreateRoom(background, &livekit.CreateRoomRequest{Name: "r"})
			return err
		}, false},
	} {
		err := c.call()
		var e *lkrpc.Error
		if !errors.As(err, &e) || !e.OutcomeUnknown || strings.Contains(err.Error(), "may have taken effect") == c.reads {
			t.Errorf("%v, of a call that only reads: %v", err, c.reads)
		}
	}
}
