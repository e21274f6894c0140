package lkrpc_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
)

// BenchmarkOwnWork measures what a call costs without a network: the generated client alone and a Client, each over a transport
// that answers at once. The difference is lkrpc's own work, steadier than over sockets.
//
//	go test -run '^$' -bench OwnWork -benchmem -count 5 .
func BenchmarkOwnWork(b *testing.B) {
	body, err := proto.Marshal(&livekit.ListParticipantsResponse{Participants: []*livekit.ParticipantInfo{{Identity: "agent"}}})
	if err != nil {
		b.Fatal(err)
	}
	token, err := auth.NewAccessToken("key", "a-secret-of-some-length-for-the-benchmark").SetVideoGrant(&auth.VideoGrant{RoomAdmin: true, Room: "r"}).ToJWT()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		room livekit.RoomService
	}{
		{"bare", bareClient("http://sfu.example.com", token, prompt(body))},
		{"token", newClient(b, "http://sfu.example.com", auth.StaticToken(token), lkrpc.WithHTTPTransport(prompt(body))).Room},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				if _, err := c.room.ListParticipants(ctx, &livekit.ListParticipantsRequest{Room: "r"}); err != nil {
					b.Error(err)
				}
				cancel()
			}
		})
	}
}

// prompt answers every request with the same body.
type prompt []byte

func (p prompt) RoundTrip(req *http.Request) (*http.Response, error) {
	defer req.Body.Close()
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/protobuf"}}, Request: req,
		Body: io.NopCloser(bytes.NewReader(p)), ContentLength: int64(len(p))}, nil
}
