package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

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
		option  failover.Option
		regions []int           // asked, in order
		code    twirp.ErrorCode // "" for success
		status  int
		lists   bool // the region list is read
	}{
		"healthy":                 {`{}`, optedIn, []int{0}, "", 0, false},
		"primary failing":         {`{"failRegions": [0]}`, optedIn, []int{0, 1}, "", 0, true},
		"two failing":             {`{"failRegions": [0, 1]}`, optedIn, []int{0, 1, 2}, "", 0, true},
		"all failing":             {`{"failRegions": [0, 1, 2, 3]}`, optedIn, []int{0, 1, 2}, twirp.Unavailable, 503, true},
		"all failing with 500":    {`{"failRegions": [0, 1, 2, 3], "failStatus": 500, "failTwirpCode": "internal"}`, optedIn, []int{0, 1, 2}, twirp.Internal, 500, true},
		"bad request":             {`{"failRegions": [0], "failStatus": 400, "failTwirpCode": "invalid_argument"}`, optedIn, []int{0}, twirp.InvalidArgument, 400, false},
		"connection dropped":      {`{"failRegions": [0], "failMode": "drop"}`, optedIn, []int{0, 1}, "", 0, true},
		"region list failing":     {`{"failRegions": [0], "regionsStatus": 500}`, optedIn, []int{0, 0, 0}, twirp.Unavailable, 503, true},
		"not opted in":            {`{"failRegions": [0]}`, failover.WithoutPrefetch(), []int{0}, twirp.Unavailable, 503, false},
		"switched off":            {`{"failRegions": [0]}`, failover.Off(), []int{0}, twirp.Unavailable, 503, false},
		"pinned to other regions": {`{"pinnedRegions": ["region-3", "region-2"]}`, optedIn, []int{0, 2}, "", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &recorder{mock: c.mock}
			client := newClient(t, s.URLs[0], auth.APIKey(s.Key, s.Secret), lkrpc.WithTransportWrapper(seen.wrap),
				lkrpc.WithFailover(failover.WithoutPrefetch(), c.option))
			ctx, err := twirp.WithHTTPRequestHeaders(t.Context(), http.Header{mockHeader: {c.mock}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Room.ListRooms(ctx, &livekit.ListRoomsRequest{})
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

// recorder notes what goes over the wire.
type recorder struct {
	mock string

	mu      sync.Mutex
	calls   []string // origin of each API request, in order
	lists   int      // requests for the region list
	ids     []string // request ids of the API requests
	strange []string // requests without the caller's header
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		if req.Header.Get(mockHeader) != r.mock {
			r.strange = append(r.strange, req.URL.String())
		}
		if strings.HasPrefix(req.URL.Path, "/twirp/") {
			r.calls = append(r.calls, "http://"+req.URL.Host)
			r.ids = append(r.ids, req.Header.Get(failover.RequestIDHeader))
		} else {
			r.lists++
		}
		r.mu.Unlock()
		return next.RoundTrip(req)
	})
}

func (r *recorder) check(t *testing.T, urls []string, regions []int, lists bool) {
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
	if (r.lists > 0) != lists {
		t.Errorf("the region list was read %d times; want it read: %t", r.lists, lists)
	}
	if len(r.strange) > 0 {
		t.Errorf("the caller's header is missing on requests for %v", r.strange)
	}
	if ids := slices.Compact(slices.Clone(r.ids)); len(ids) != 1 || ids[0] == "" {
		t.Errorf("request ids %q, want one for all attempts", r.ids)
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
