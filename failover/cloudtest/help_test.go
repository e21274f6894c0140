package cloudtest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

var background = context.Background()

// mode is a way to reach a Cloud. What holds in one must hold in all.
type mode struct {
	name   string
	memory bool
	opts   []cloudtest.Option
}

var modes = []mode{
	{"sockets h2", false, nil},
	{"sockets h1", false, []cloudtest.Option{cloudtest.HTTP1()}},
	{"sockets plain", false, []cloudtest.Option{cloudtest.PlainHTTP()}},
	{"memory h2", true, []cloudtest.Option{cloudtest.InMemory()}},
	{"memory h1", true, []cloudtest.Option{cloudtest.InMemory(), cloudtest.HTTP1()}},
	{"memory plain", true, []cloudtest.Option{cloudtest.InMemory(), cloudtest.PlainHTTP()}},
}

// inEach runs a test in every mode, in memory inside a bubble.
func inEach(t *testing.T, test func(*testing.T, *user)) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			run := func(t *testing.T) { test(t, newUser(t, start(t, m.opts...))) }
			if m.memory {
				synctest.Test(t, run)
				return
			}
			run(t)
		})
	}
}

// inBubble runs a test in memory, on a clock that moves by itself.
func inBubble(t *testing.T, test func(*testing.T, *user), opts ...cloudtest.Option) {
	synctest.Test(t, func(t *testing.T) {
		test(t, newUser(t, start(t, append([]cloudtest.Option{cloudtest.InMemory()}, opts...)...)))
	})
}

func start(t testing.TB, opts ...cloudtest.Option) *cloudtest.Cloud {
	t.Helper()
	c, err := cloudtest.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// user is someone with a token for everything in the room "room", and a connection pool.
type user struct {
	*cloudtest.Cloud
	t     testing.TB
	token string
	tr    *http.Transport
}

func newUser(t testing.TB, c *cloudtest.Cloud) *user {
	u := &user{Cloud: c, t: t, tr: c.Transport()}
	u.token = u.tokenFor(&auth.ClaimGrants{
		Identity: "me",
		Video: &auth.VideoGrant{RoomCreate: true, RoomList: true, RoomRecord: true, RoomAdmin: true, RoomJoin: true, Room: "room",
			IngressAdmin: true, DestinationRoom: "other"},
		SIP:   &auth.SIPGrant{Admin: true, Call: true},
		Agent: &auth.AgentGrant{Admin: true, SimulationAdmin: true},
	})
	t.Cleanup(u.tr.CloseIdleConnections)
	return u
}

// another returns the same user with connections of its own.
func (u *user) another() *user {
	other := *u
	other.tr = u.Transport()
	u.t.Cleanup(other.tr.CloseIdleConnections)
	return &other
}

func (u *user) tokenFor(claims *auth.ClaimGrants) string {
	u.t.Helper()
	token, err := auth.APIKey(u.Key, u.Secret).Token(background, claims)
	if err != nil {
		u.t.Fatal(err)
	}
	return token
}

// Do sends a request with the user's token, if it has none.
func (u *user) Do(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+u.token)
	}
	return u.tr.RoundTrip(r)
}

func (u *user) rooms(h *cloudtest.Host) livekit.RoomService {
	return livekit.NewRoomServiceProtobufClient(h.URL(), u)
}

func (u *user) agents(h *cloudtest.Host) livekit.AgentDispatchService {
	return livekit.NewAgentDispatchServiceProtobufClient(h.URL(), u)
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of the request, or of reading the answer
	took   time.Duration
}

const createRoom = "/twirp/livekit.RoomService/CreateRoom"

// create asks a host for the room "room", as JSON so that the answer can be read. It is what most tests break.
func (u *user) create(ctx context.Context, h *cloudtest.Host, header ...string) answer {
	return u.post(ctx, h, createRoom, `{"name":"room","metadata":"0123456789"}`, header...)
}

func (u *user) post(ctx context.Context, h *cloudtest.Host, path, body string, header ...string) answer {
	r, err := http.NewRequestWithContext(ctx, "POST", h.URL()+path, strings.NewReader(body))
	if err != nil {
		u.t.Error(err)
		return answer{err: err}
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return u.send(r)
}

func (u *user) get(ctx context.Context, url string) answer {
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		u.t.Error(err)
		return answer{err: err}
	}
	return u.send(r)
}

func (u *user) send(r *http.Request) (a answer) {
	begin := time.Now()
	defer func() { a.took = time.Since(begin) }()
	resp, err := u.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

// works fails the test unless a host answers as it should.
func (u *user) works(h *cloudtest.Host) {
	u.t.Helper()
	if a := u.create(background, h); a.err != nil || a.status != 200 || !strings.Contains(a.body, "0123456789") {
		u.t.Fatalf("%s does not work: %d %q %v", h, a.status, a.body, a.err)
	}
}

// effects counts what took effect, by method.
func (u *user) effects(rpc string) (n int) {
	for _, e := range u.Effects() {
		if e.RPC == rpc {
			n++
		}
	}
	return n
}

// eventually waits for what other goroutines bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// waitFor answers when a channel is closed.
func waitFor(release <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
			io.WriteString(w, "released")
		case <-r.Context().Done():
		}
	}
}
