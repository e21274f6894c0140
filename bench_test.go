package lkrpc_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// BenchmarkHealthyCall measures a call that succeeds at once, beside the generated Twirp client alone with the same transport
// settings and a ready-made token. Compare the lines of one run with each other, not with another machine's.
//
//	go test -run '^$' -bench HealthyCall -benchmem -count 5 .
func BenchmarkHealthyCall(b *testing.B) {
	server := httptest.NewServer(livekit.NewRoomServiceServer(listOnly{}))
	defer server.Close()
	token, err := auth.NewAccessToken("key", "a-secret-of-some-length-for-the-benchmark").SetVideoGrant(&auth.VideoGrant{RoomAdmin: true, Room: "r"}).ToJWT()
	if err != nil {
		b.Fatal(err)
	}
	bare := bareClient(server.URL, token, ownPool())
	ready := newClient(b, server.URL, auth.StaticToken(token))
	signing := newClient(b, server.URL, auth.APIKey("key", "a-secret-of-some-length-for-the-benchmark"))
	several := newClient(b, server.URL, auth.StaticToken(token), lkrpc.WithFailover(failover.Hosts("127.0.0.1")))
	var rooms atomic.Int64
	fixed := func() string { return "r" }
	for _, callers := range []int{1, 64} {
		for _, c := range []struct {
			name string
			room livekit.RoomService
			next func() string
		}{
			{"bare", bare, fixed},
			{"token", ready.Room, fixed},
			{"token-3-attempts", several.Room, fixed},
			{"signing-a-room", signing.Room, fixed},
			{"signing-new-rooms", signing.Room, func() string { return "room-" + time.Duration(rooms.Add(1)).String() }},
		} {
			b.Run(c.name+"/callers="+map[int]string{1: "1", 64: "64"}[callers], func(b *testing.B) {
				b.ReportAllocs()
				before := cpuTime()
				inParallel(b, callers, func() {
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					defer cancel()
					if _, err := c.room.ListParticipants(ctx, &livekit.ListParticipantsRequest{Room: c.next()}); err != nil {
						b.Error(err)
					}
				})
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func newClient(b *testing.B, url string, creds auth.Credentials, opts ...lkrpc.Option) *lkrpc.Client {
	b.Helper()
	c, err := lkrpc.New(url, creds, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// ownPool is a transport with the pool that lkrpc uses; net/http's own keeps two idle connections and would make the comparison
// about that.
func ownPool() http.RoundTripper {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.MaxIdleConns, tr.MaxIdleConnsPerHost = 0, 100
	return tr
}

// bareClient is the generated client alone.
func bareClient(url, token string, tr http.RoundTripper) livekit.RoomService {
	header := http.Header{"Authorization": {"Bearer " + token}}
	return livekit.NewRoomServiceProtobufClient(url, &http.Client{Transport: tr}, twirp.WithClientInterceptors(func(next twirp.Method) twirp.Method {
		return func(ctx context.Context, req any) (any, error) {
			ctx, err := twirp.WithHTTPRequestHeaders(ctx, header)
			if err != nil {
				return nil, err
			}
			return next(ctx, req)
		}
	}))
}

func inParallel(b *testing.B, callers int, call func()) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				call()
			}
		})
	}
	wg.Wait()
}

// cpuTime is what this process has used, the server of the benchmark included.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// listOnly answers ListParticipants.
type listOnly struct{ livekit.RoomService }

func (listOnly) ListParticipants(_ context.Context, req *livekit.ListParticipantsRequest) (*livekit.ListParticipantsResponse, error) {
	return &livekit.ListParticipantsResponse{Participants: []*livekit.ParticipantInfo{{Identity: "agent", Sid: req.GetRoom()}}}, nil
}
