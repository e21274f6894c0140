package lkrpc_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

func withHeaders(t *testing.T, h http.Header) context.Context {
	t.Helper()
	ctx, err := twirp.WithHTTPRequestHeaders(background, h)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func TestHeaders(t *testing.T) {
	rec := &recorder{}
	option := http.Header{"X-Tenant": {"from the option"}, "x-trace": {"t"}}
	client := newTestClient(t, "localhost:7880", rec, lkrpc.WithHeader(option))
	option.Set("X-Tenant", "changed later")

	context := http.Header{
		"X-Tenant":             {"from the context"},
		"X-Lk-Mock":            {"{}"},
		"authorization":        {"Bearer somebody-else"},
		"Authorization":        {"Bearer somebody-else"},
		"X-Livekit-Request-Id": {"from elsewhere"},
		"X-Twirp-Timeout-Ms":   {"1"},
	}
	before := context.Clone()
	ctx := withHeaders(t, context)
	req := &livekit.ListRoomsRequest{Names: []string{"r"}}
	if _, err := client.Room.ListRooms(ctx, req); err != nil {
		t.Fatal(err)
	}
	r := rec.last(t)
	claimsOf(t, r) // exactly one Authorization header, ours
	for name := range r.Header {
		if strings.EqualFold(name, "Authorization") && name != "Authorization" {
			t.Errorf("a second Authorization header was sent as %q", name)
		}
	}
	if got := r.Header.Values("X-Tenant"); !slices.Equal(got, []string{"from the context"}) {
		t.Errorf("X-Tenant %q, want the context's", got)
	}
	if r.Header.Get("X-Trace") != "t" || r.Header.Get("X-Lk-Mock") != "{}" {
		t.Errorf("a caller's header is missing: %v", r.Header)
	}
	if id := r.Header.Values(failover.RequestIDHeader); len(id) != 1 || id[0] == "from elsewhere" || id[0] == "" {
		t.Errorf("request id %q, want a fresh one", id)
	}
	if r.Header.Get("X-Twirp-Timeout-Ms") == "1" {
		t.Error("the caller's X-Twirp-Timeout-Ms was sent")
	}
	if !reflect.DeepEqual(context, before) {
		t.Errorf("the context's header map was changed: %v", context)
	}
	if got := r.Header.Values("User-Agent"); !slices.Equal(got, []string{"lkrpc/" + lkrpc.Version}) {
		t.Errorf("User-Agent %q, want lkrpc/%s", got, lkrpc.Version)
	}
}

// What cannot be sent is told at once, by the header's name: its value may be a secret.
func TestHeadersThatCannotBeSent(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"X-A", "s3cret\r\nB: c", "X-A"},
		{"X-A", "s3cret\x00", "X-A"},
		{"X-A", "s3cret\x1b[31m", "X-A"},
		{"X-A", "s3cret\x7f", "X-A"},
		{"X-A", "s3cret\x01", "X-A"},
		{"", "s3cret", `""`},
		{"X A", "s3cret", `"X A"`},
		{"X-A:", "s3cret", `"X-A:"`},
		{"X-\x1b", "s3cret", `"X-\x1b"`},
		{"X-ü", "s3cret", `"X-ü"`},
		{"X-A\n", "s3cret", `"X-A\n"`},
		{"X-A", "tab\t, ünicode \xff and !#$%&'*+-.^_`|~", ""},
		{"x!#$%&'*+-.^_`|~09aZ", "v", ""},
	} {
		header := http.Header{c.name: {"fine", c.value}}
		rec := &recorder{}
		_, option := lkrpc.New("h", auth.APIKey(testKey, testSecret), lkrpc.WithHTTPTransport(rec), lkrpc.WithHeader(header))
		_, call := newTestClient(t, "h", rec).Room.ListRooms(withHeaders(t, header), &livekit.ListRoomsRequest{})
		if c.says == "" {
			if option != nil || call != nil || rec.last(t).Header[http.CanonicalHeaderKey(c.name)][1] != c.value {
				t.Errorf("%q: %q: %v, %v; want none", c.name, c.value, option, call)
			}
			continue
		}
		if option == nil {
			t.Errorf("%q: %q was taken by WithHeader", c.name, c.value)
			continue
		}
		wantLocal(t, "in a context", call, c.says)
		for _, err := range []error{option, call} {
			if text := err.Error(); !strings.Contains(text, c.says) || strings.Contains(text, "s3cret") || strings.ContainsAny(text, "\n\x1b\x00") {
				t.Errorf("%q, want it to say %s and not the value", text, c.says)
			}
		}
		if n := len(rec.requests()); n != 0 {
			t.Errorf("%q: %q: %d requests were sent", c.name, c.value, n)
		}
	}
	rec := &recorder{}
	ctx := withHeaders(t, http.Header{"authorization": {"a\nb"}, "X-Livekit-Request-Id": {"a\nb"}}) // never sent
	if _, err := newTestClient(t, "h", rec).Room.ListRooms(ctx, &livekit.ListRoomsRequest{}); err != nil || len(rec.requests()) != 1 {
		t.Errorf("headers that the client sets itself: %v after %d requests", err, len(rec.requests()))
	}
}

// A token that cannot stand in a header is told without showing it.
func TestTokensThatCannotBeSent(t *testing.T) {
	for _, spoiled := range []string{jwt + "\n", "\t" + jwt, "Bearer " + jwt, jwt + "\x00", jwt + "\x1b[0m", jwt + "\x7f", jwt + "ü", jwt + "\xff", "\r\n"} {
		rec := &recorder{}
		client, err := lkrpc.New("h", tokens(func(context.Context, *auth.ClaimGrants) (string, error) { return spoiled, nil }), lkrpc.WithHTTPTransport(rec))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Room.ListRooms(background, &livekit.ListRoomsRequest{})
		client.Close()
		var e *lkrpc.Error
		if !errors.As(err, &e) || e.Code() != twirp.Unauthenticated || !strings.Contains(e.Msg(), "Authorization") || len(rec.requests()) != 0 {
			t.Errorf("%q: %v after %d requests, want a local error that names the header", spoiled, err, len(rec.requests()))
		}
		if strings.Contains(err.Error(), "eyJ") || strings.ContainsAny(err.Error(), "\n\x1b\x00") {
			t.Errorf("the token is shown: %q", err)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	for name, opt := range map[string]lkrpc.Option{
		"Authorization":             lkrpc.WithHeader(http.Header{"authorization": {"Bearer x"}}),
		"X-Livekit-Request-Id":      lkrpc.WithHeader(http.Header{"x-livekit-request-id": {"x"}}),
		"line break":                lkrpc.WithHeader(http.Header{"X-A": {"a\r\nB: c"}}),
		"WithHTTPTransport(nil)":    lkrpc.WithHTTPTransport(nil),
		"nil":                       lkrpc.WithHTTPTransport((*http.Transport)(nil)),
		"WithTransportWrapper(nil)": lkrpc.WithTransportWrapper(nil),
		"interceptor 1 is nil":      lkrpc.WithInterceptors(nil),
		"option 1 is nil":           nil,
		"host pattern":              lkrpc.WithFailover(failover.Hosts("https://h")),
		"origin \"ftp://h\"":        lkrpc.WithFailover(failover.Origins("ftp://h")),
		"OnAttempt(nil)":            lkrpc.WithFailover(failover.OnAttempt(nil)),
		"failover.Hosts(\"h\")":     lkrpc.WithFailover(failover.Origins("https://other.example.com")),
		"http://plain.example.com":  lkrpc.WithFailover(failover.Hosts("h"), failover.Origins("https://eu.example.com", "http://plain.example.com")),
	} {
		c, err := lkrpc.New("h", auth.APIKey(testKey, testSecret), opt)
		if err == nil {
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error that says %s", err, name)
		}
	}
}

func TestWrongCredentials(t *testing.T) {
	for _, c := range []struct {
		creds auth.Credentials
		says  string
	}{
		{auth.APIKey("", testSecret), "key"},
		{auth.APIKey(testKey, ""), "secret"},
		{auth.StaticToken(""), "token"},
		{auth.StaticToken("no jwt"), "token"},
		{nil, "nil"},
	} {
		client, err := lkrpc.New("h", c.creds)
		if err == nil {
			client.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want an error that names the %s", err, c.says)
		}
	}
}

// tokens are credentials of a caller's own making.
type tokens func(context.Context, *auth.ClaimGrants) (string, error)

func (f tokens) Token(ctx context.Context, g *auth.ClaimGrants) (string, error) { return f(ctx, g) }

func TestOwnCredentials(t *testing.T) {
	broken := errors.New("vault is sealed")
	for _, c := range []struct {
		token string
		err   error
		code  twirp.ErrorCode
	}{
		{"", nil, twirp.Unauthenticated},
		{"", broken, twirp.Unauthenticated},
		{"eyJhbGciOiJIUzI1NiJ9.e30.x", nil, twirp.NoError},
	} {
		rec := &recorder{}
		client, err := lkrpc.New("h", tokens(func(_ context.Context, g *auth.ClaimGrants) (string, error) {
			if g.Video == nil || !g.Video.RoomList {
				t.Errorf("the credentials were asked for %v, want roomList", g)
			}
			return c.token, c.err
		}), lkrpc.WithHTTPTransport(rec))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Room.ListRooms(background, &livekit.ListRoomsRequest{})
		client.Close()
		if c.code == twirp.NoError {
			if err != nil || rec.last(t).Header.Get("Authorization") != "Bearer "+c.token {
				t.Errorf("own token: %v", err)
			}
			continue
		}
		var e *lkrpc.Error
		if !errors.As(err, &e) || e.Code() != c.code || c.err != nil && !errors.Is(err, c.err) || len(rec.requests()) != 0 {
			t.Errorf("%v after %d requests, want a local %s", err, len(rec.requests()), c.code)
		}
	}
}

// Interceptors of the caller's are outermost: they see the request as it was made, and the *Error.
func TestInterceptors(t *testing.T) {
	var order []string
	interceptor := func(name string) twirp.Interceptor {
		return func(next twirp.Method) twirp.Method {
			return func(ctx context.Context, req any) (any, error) {
				order = append(order, name)
				resp, err := next(ctx, req)
				if e, ok := err.(*lkrpc.Error); !ok || e.Method != "DeleteRoom" {
					t.Errorf("interceptor %s got %T, want an *Error of DeleteRoom", name, err)
				}
				return resp, err
			}
		}
	}
	client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) {
		return answer(r, 404, "application/json", ""), nil
	}), lkrpc.WithInterceptors(interceptor("a"), interceptor("b")), lkrpc.WithInterceptors(interceptor("c")))
	if _, err := client.Room.DeleteRoom(background, &livekit.DeleteRoomRequest{Room: "r"}); err == nil {
		t.Error("a 404 was no error")
	}
	if strings.Join(order, "") != "abc" {
		t.Errorf("order %v, want a b c", order)
	}
}

func TestCloseEndsTheClient(t *testing.T) {
	client := newTestClient(t, "h", &recorder{})
	for range 2 {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a call after Close: %v, want an error that says so", err)
	}
	if err := new(lkrpc.Client).Close(); err != nil { // one of fakes, as tests make them
		t.Error(err)
	}
}

// What a request that came in says of its own connection, body and answer does not go on with a call, in any spelling: the
// headers of such a request are often passed on whole.
func TestHeadersOfAnotherConnection(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		for name, value := range map[string]string{
			"Accept-Encoding": "gzip, br", "Connection": "Upgrade", "Content-Encoding": "gzip", "Content-Length": "5", "Expect": "100-continue",
			"Host": "other.example.com", "Keep-Alive": "timeout=5", "Proxy-Connection": "close", "Te": "gzip", "Trailer": "X-A",
			"Transfer-Encoding": "chunked", "Upgrade": "websocket", "accept": "text/html", "content-type": "application/json",
			"upgrade": "h2c", "TE": "gzip", "twirp-version": "v0",
		} {
			cloud.Forget()
			rec := &recorder{}
			ctx := withHeaders(t, http.Header{name: {value}})
			_, err := client.Room.CreateRoom(ctx, &livekit.CreateRoomRequest{Name: "r"})
			if got := calls(cloud); err != nil || len(got) != 1 {
				t.Errorf("%s: %v after %v, want one request that is answered", name, err, got)
			}
			if _, err := newTestClient(t, "localhost:7880", rec).Room.ListRooms(ctx, &livekit.ListRoomsRequest{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if h := rec.last(t).Header; slices.Contains(h.Values(name), value) || slices.Contains(h[name], value) {
				t.Errorf("%s was sent: %v", name, h)
			}
		}
	})
}
