package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/lkrpc/lkrpc/testdata/servers"
	"github.com/twitchtv/twirp"
)

// mockHeader tells the test-server what to do with a request.
const mockHeader = "X-Lk-Mock"

// The failover of API calls against the server that LiveKit's own SDKs have to pass.
func TestFailover(t *testing.T) {
	s := servers.TestServer(t, 4)
	optedIn := failover.Hosts("127.0.0.1")
	for name, c := range map[string]struct {
		mock    string
		opts    []failover.Option
		ctx     func(context.Context) context.Context
		regions []int           // asked, in order
		code    twirp.ErrorCode // "" for success
		status  int
		lists   bool // the region list is read
	}{
		"healthy":         {mock: `{}`, regions: []int{0}},
		"primary failing": {mock: `{"failRegions": [0]}`, regions: []int{0, 1}, lists: true},
		"two failing":     {mock: `{"failRegions": [0, 1]}`, regions: []int{0, 1, 2}, lists: true},
		"all failing":     {mock: `{"failRegions": [0, 1, 2, 3]}`, regions: []int{0, 1, 2}, code: twirp.Unavailable, status: 503, lists: true},
		"all failing with 500": {mock: `{"failRegions": [0, 1, 2, 3], "failStatus": 500, "failTwirpCode": "internal"}`,
			regions: []int{0, 1, 2}, code: twirp.Internal, status: 500, lists: true},
		"bad request": {mock: `{"failRegions": [0], "failStatus": 400, "failTwirpCode": "invalid_argument"}`,
			regions: []int{0}, code: twirp.InvalidArgument, status: 400},
		"connection dropped":      {mock: `{"failRegions": [0], "failMode": "drop"}`, regions: []int{0, 1}, lists: true},
		"two connections dropped": {mock: `{"failRegions": [0, 1], "failMode": "drop"}`, regions: []int{0, 1, 2}, lists: true},
		"region list failing": {mock: `{"failRegions": [0], "regionsStatus": 500}`,
			regions: []int{0, 0, 0}, code: twirp.Unavailable, status: 503, lists: true},
		"not opted in": {mock: `{"failRegions": [0]}`, opts: []failover.Option{failover.WithoutPrefetch()},
			regions: []int{0}, code: twirp.Unavailable, status: 503},
		"another host opted in": {mock: `{"failRegions": [0]}`, opts: []failover.Option{failover.Hosts("localhost")},
			regions: []int{0}, code: twirp.Unavailable, status: 503},
		"switched off": {mock: `{"failRegions": [0]}`, opts: []failover.Option{optedIn, failover.Off()},
			regions: []int{0}, code: twirp.Unavailable, status: 503},
		"switched off for the call": {mock: `{"failRegions": [0]}`, ctx: lkrpc.WithoutFailover,
			regions: []int{0}, code: twirp.Unavailable, status: 503},
		"little time": {mock: `{"failRegions": [0]}`, ctx: little, regions: []int{0}, code: twirp.Unavailable, status: 503},

		"pinned to another region":                {mock: `{"pinnedRegions": ["region-2"]}`, regions: []int{0, 2}, lists: true},
		"pinned to two, in the order of the list": {mock: `{"pinnedRegions": ["region-3", "region-2"]}`, regions: []int{0, 2}, lists: true},
		"pinned to the primary":                   {mock: `{"pinnedRegions": ["region-0"]}`, regions: []int{0}},
		"pinned elsewhere, failing there":         {mock: `{"pinnedRegions": ["region-2", "region-3"], "failRegions": [2]}`, regions: []int{0, 2, 3}, lists: true},
		"pinned elsewhere, switched off": {mock: `{"pinnedRegions": ["region-2"]}`, opts: []failover.Option{optedIn, failover.Off()},
			regions: []int{0, 2}, lists: true},
		"pinned elsewhere, switched off for the call": {mock: `{"pinnedRegions": ["region-2"]}`, ctx: lkrpc.WithoutFailover,
			regions: []int{0, 2}, lists: true},
		"pinned elsewhere, little time":     {mock: `{"pinnedRegions": ["region-2"]}`, ctx: little, regions: []int{0, 2}, lists: true},
		"pinned to no region that there is": {mock: `{"pinnedRegions": ["region-9"]}`, regions: []int{0}, code: twirp.PermissionDenied, status: 451, lists: true},
		"pinned elsewhere, not opted in": {mock: `{"pinnedRegions": ["region-2"]}`, opts: []failover.Option{failover.WithoutPrefetch()},
			regions: []int{0}, code: twirp.PermissionDenied, status: 451},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &recorder{mock: c.mock}
			if c.opts == nil {
				c.opts = []failover.Option{optedIn}
			}
			client := newClient(t, s.URLs[0], auth.APIKey(s.Key, s.Secret), lkrpc.WithTransportWrapper(seen.wrap),
				lkrpc.WithFailover(append(c.opts, failover.OnAttempt(seen.attempt))...))
			ctx := mocked(t, c.mock)
			if c.ctx != nil {
				ctx = c.ctx(ctx)
			}
			_, err := client.Room.ListRooms(ctx, &livekit.ListRoomsRequest{Names: []string{"a room"}})
			if c.code == "" && err != nil {
				t.Errorf("the call failed: %v", err)
			}
			if c.code != "" {
				if e := wantCode(t, err, c.code); e.HTTPStatus != c.status || len(e.Attempts) != len(c.regions) {
					t.Errorf("status %d after %d attempts, want %d after %d", e.HTTPStatus, len(e.Attempts), c.status, len(c.regions))
				}
			}
			seen.check(t, s.URLs, c.regions, c.lists)
		})
	}
}

// mocked returns a context whose calls tell the test-server what to do.
func mocked(t *testing.T, mock string) context.Context {
	t.Helper()
	ctx, err := twirp.WithHTTPRequestHeaders(t.Context(), http.Header{mockHeader: {mock}})
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// little leaves a call less time than a second attempt is made in.
func little(ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	context.AfterFunc(ctx, cancel) // the test's own end comes first
	return ctx
}

// What a 451 taught holds as long as the region list does: the test-server's is stale at once, so that each call asks the primary
// again. With a list that lasts, later calls start in the allowed region.
func TestPinnedLater(t *testing.T) {
	s := servers.TestServer(t, 4)
	const mock = `{"pinnedRegions": ["region-2"]}`
	for name, c := range map[string]struct {
		maxAge  string // in place of the server's; "" for that
		regions []int
	}{
		"as the server says": {"", []int{0, 2, 0, 2, 0, 2}},
		"for a minute":       {"max-age=60", []int{0, 2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &recorder{mock: mock, maxAge: c.maxAge}
			client := newClient(t, s.URLs[0], auth.APIKey(s.Key, s.Secret), lkrpc.WithTransportWrapper(seen.wrap),
				lkrpc.WithFailover(failover.Hosts("127.0.0.1")))
			for range 3 {
				if _, err := client.Room.ListRooms(mocked(t, mock), &livekit.ListRoomsRequest{}); err != nil {
					t.Fatal(err)
				}
			}
			seen.asked(t, s.URLs, c.regions)
		})
	}
}

// A 451 makes the list that was read before it worthless, however fresh it is.
func TestPinnedAfterAList(t *testing.T) {
	s := servers.TestServer(t, 4)
	seen := &recorder{maxAge: "max-age=60"}
	client := newClient(t, s.URLs[0], auth.APIKey(s.Key, s.Secret), lkrpc.WithTransportWrapper(seen.wrap),
		lkrpc.WithFailover(failover.Hosts("127.0.0.1")))
	for _, mock := range []string{`{"failRegions": [0]}`, `{"pinnedRegions": ["region-3"]}`} {
		if _, err := client.Room.ListRooms(mocked(t, mock), &livekit.ListRoomsRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	seen.asked(t, s.URLs, []int{0, 1, 1, 3}) // the second call starts where the first one was answered
	if seen.lists != 2 {
		t.Errorf("the region list was read %d times, want 2", seen.lists)
	}
}

// recorder notes what goes over the wire.
type recorder struct {
	mock   string
	maxAge string // put on region lists in place of the server's; "" for that

	mu      sync.Mutex
	calls   []string        // origin of each API request, in order
	bodies  []string        // and its body
	ids     []string        // and its request id
	waits   []time.Duration // before each attempt that is over
	lists   int             // requests for the region list
	strange []string        // requests without the caller's header
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		list := !strings.HasPrefix(req.URL.Path, "/twirp/")
		r.mu.Lock()
		if r.mock != "" && req.Header.Get(mockHeader) != r.mock {
			r.strange = append(r.strange, req.URL.String())
		}
		if list {
			r.lists++
		} else {
			body, _ := io.ReadAll(req.Body)
			req = req.Clone(req.Context())
			req.Body = io.NopCloser(bytes.NewReader(body))
			r.calls = append(r.calls, "http://"+req.URL.Host)
			r.bodies = append(r.bodies, string(body))
			r.ids = append(r.ids, req.Header.Get(failover.RequestIDHeader))
		}
		r.mu.Unlock()
		resp, err := next.RoundTrip(req)
		if err == nil && list && r.maxAge != "" {
			resp.Header.Set("Cache-Control", r.maxAge)
		}
		return resp, err
	})
}

func (r *recorder) attempt(_ context.Context, a failover.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = append(r.waits, a.Wait)
}

// asked checks which regions were asked, in order.
func (r *recorder) asked(t *testing.T, urls []string, regions []int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var want []string
	for _, i := range regions {
		want = append(want, urls[i])
	}
	if !slices.Equal(r.calls, want) {
		t.Errorf("asked were %v, want %v", r.calls, want)
	}
}

// check looks at all that belongs to one call.
func (r *recorder) check(t *testing.T, urls []string, regions []int, lists bool) {
	t.Helper()
	r.asked(t, urls, regions)
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.lists > 0) != lists {
		t.Errorf("the region list was read %d times; want it read: %t", r.lists, lists)
	}
	if len(r.strange) > 0 {
		t.Errorf("the caller's header is missing on requests for %v", r.strange)
	}
	if ids := slices.Compact(slices.Clone(r.ids)); len(ids) != 1 || ids[0] == "" {
		t.Errorf("request ids %q, want one for all attempts", r.ids)
	}
	if bodies := slices.Compact(slices.Clone(r.bodies)); len(bodies) != 1 || bodies[0] == "" {
		t.Errorf("bodies %q, want one for all attempts", r.bodies)
	}
	if strings.Contains(r.mock, "pinned") && !strings.Contains(r.mock, "fail") && slices.Max(r.waits) > 0 {
		t.Errorf("waits %v: a 451 is followed at once", r.waits)
	}
}

// A call that cannot reach its phone says so by the SIP status that the server gives, and is never repeated.
func TestBusyPhone(t *testing.T) {
	s := servers.TestServer(t, 2)
	seen := &recorder{mock: `{"delayMs": 0, "sipStatus": {"code": 486, "status": "Busy Here"}}`}
	client := newClient(t, s.URLs[0], auth.APIKey(s.Key, s.Secret), lkrpc.WithTransportWrapper(seen.wrap),
		lkrpc.WithHeader(http.Header{mockHeader: {seen.mock}}), lkrpc.WithFailover(failover.WithoutPrefetch(), failover.Hosts("127.0.0.1")))
	for name, call := range map[string]func() error{
		"CreateSIPParticipant": func() error {
			_, err := client.SIP.CreateSIPParticipant(t.Context(), &livekit.CreateSIPParticipantRequest{
				SipTrunkId: "trunk", SipCallTo: "+1", RoomName: "r", ParticipantIdentity: "phone", WaitUntilAnswered: true,
			})
			return err
		},
		"TransferSIPParticipant": func() error {
			_, err := client.SIP.TransferSIPParticipant(t.Context(), &livekit.TransferSIPParticipantRequest{
				RoomName: "r", ParticipantIdentity: "phone", TransferTo: "tel:+1",
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen.calls = nil
			err := call()
			code, reason, ok := lkrpc.SIPStatus(err)
			if got := fmt.Sprintf("%d %s %t", code, reason, ok); got != "486 Busy Here true" {
				t.Errorf("SIP status %s of %v, want 486 Busy Here", got, err)
			}
			if len(seen.calls) != 1 {
				t.Errorf("%d requests, want 1", len(seen.calls))
			}
		})
	}
}
