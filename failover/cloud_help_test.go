package failover_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// The tests in cloud_*_test.go are about what a user of lkrpc meets when LiveKit Cloud breaks: the whole client, over TLS and
// HTTP/2, to a Cloud of three regions.

// user calls a Cloud.
type user struct {
	*cloudtest.Cloud
	t                   *testing.T
	client              *lkrpc.Client
	lists               *listMeter
	home, second, third *cloudtest.Host // in the order of the region list
}

// setup is how a user's Cloud and client differ from the usual.
type setup struct {
	cloud    []cloudtest.Option
	client   []lkrpc.Option
	failover []failover.Option
	url      string // what the client is given; empty: the Cloud's
}

// onCloud runs a test in a bubble. When it is over, nothing of the client may be left: no goroutine, no connection.
func onCloud(t *testing.T, s setup, test func(u *user)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.cloud = append([]cloudtest.Option{cloudtest.InMemory()}, s.cloud...)
		u := newUser(t, s)
		test(u)
		u.client.Close()
		synctest.Wait()
		if left := engineGoroutines(); len(left) > 0 {
			t.Errorf("%d goroutines are left, the first:\n%s", len(left), left[0])
		}
		for _, h := range u.Regions() {
			if n := h.Connections(); n > 0 {
				t.Errorf("%d connections to %s are left", n, h)
			}
		}
	})
}

// newUser starts a Cloud for a client, and demands at the end that no request went outside it.
func newUser(t *testing.T, s setup) *user {
	t.Helper()
	c, err := cloudtest.Start(s.cloud...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	u := &user{Cloud: c, t: t, lists: &listMeter{read: make(chan struct{}, 100)}, home: c.Region(0), second: c.Region(1), third: c.Region(2)}
	if s.url == "" {
		s.url = c.URL
	}
	opts := append([]lkrpc.Option{lkrpc.WithHTTPTransport(c.Transport()), lkrpc.WithTransportWrapper(u.lists.wrap),
		lkrpc.WithFailover(s.failover...)}, s.client...)
	if u.client, err = lkrpc.New(s.url, auth.APIKey(c.Key, c.Secret), opts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.client.Close()
		if strays := c.Strays(); len(strays) > 0 {
			t.Errorf("dialled hosts that do not exist: %q", strays)
		}
	})
	return u
}

// told is what a call came to.
type told struct {
	err  error
	took time.Duration
}

// failure is the call's error, which it must have.
func (o told) failure(t *testing.T) *lkrpc.Error {
	t.Helper()
	e := &lkrpc.Error{}
	if !errors.As(o.err, &e) {
		t.Errorf("got %v, want a *lkrpc.Error", o.err)
	}
	return e
}

// rooms makes a Safe call.
func (u *user) rooms(ctx context.Context) told {
	begin := time.Now()
	_, err := u.client.Room.ListRooms(ctx, &livekit.ListRoomsRequest{})
	return told{err, time.Since(begin)}
}

// dispatch makes a Keyed call.
func (u *user) dispatch(ctx context.Context) told {
	begin := time.Now()
	d, err := u.client.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "room", AgentName: "agent", Metadata: "call 17"})
	if err == nil && (d.GetAgentName() != "agent" || d.GetId() == "") {
		u.t.Errorf("dispatched %v", d)
	}
	return told{err, time.Since(begin)}
}

// good makes calls that must succeed, and lets the region list be read behind them.
func (u *user) good(n int) {
	u.t.Helper()
	for range n {
		if o := u.rooms(context.Background()); o.err != nil {
			u.t.Fatal(o.err)
		}
		synctest.Wait()
	}
}

// atOnce makes n Safe calls together.
func (u *user) atOnce(n int) []told {
	outcomes := make([]told, n)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() { outcomes[i] = u.rooms(context.Background()) })
	}
	all.Wait()
	return outcomes
}

// asked counts the API requests that arrived at each region.
func (u *user) asked() [3]int {
	var n [3]int
	for i, h := range u.Regions() {
		n[i] = len(calls(h))
	}
	return n
}

// since is asked less what it was before.
func (u *user) since(before [3]int) [3]int {
	n := u.asked()
	for i := range n {
		n[i] -= before[i]
	}
	return n
}

// calls are the API requests that arrived at a host.
func calls(h *cloudtest.Host) (list []cloudtest.Request) {
	for _, q := range h.Requests() {
		if q.RPC != "" {
			list = append(list, q)
		}
	}
	return list
}

// listRequests counts the requests for a region list that arrived anywhere.
func (u *user) listRequests() (n int) {
	for _, q := range u.Requests() {
		if q.Path == cloudtest.RegionList {
			n++
		}
	}
	return n
}

// listMeter sees what the client reads of region lists.
type listMeter struct {
	bytes atomic.Int64
	read  chan struct{} // one for each list that was read or given up
}

func (m *listMeter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && strings.HasSuffix(r.URL.Path, cloudtest.RegionList) {
			resp.Body = &meteredBody{resp.Body, m}
		}
		return resp, err
	})
}

type meteredBody struct {
	io.ReadCloser
	meter *listMeter
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.meter.bytes.Add(int64(n))
	return n, err
}

func (b *meteredBody) Close() error {
	b.meter.read <- struct{}{}
	return b.ReadCloser.Close()
}
