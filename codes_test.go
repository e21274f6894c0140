package lkrpc_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// The code of a status that says nothing more, and how much of its text is told.
func TestCodesOfStatuses(t *testing.T) {
	const long = 5000
	for code, statuses := range map[twirp.ErrorCode][]int{
		twirp.Internal:          {300, 304, 400},
		twirp.Unauthenticated:   {401},
		twirp.PermissionDenied:  {403, 451},
		twirp.BadRoute:          {404},
		twirp.ResourceExhausted: {429},
		twirp.Unavailable:       {502, 503, 504, 520, 521, 522, 523, 524},
		twirp.Unknown:           {402, 409, 418, 500, 501, 505, 519, 525, 599},
	} {
		for _, status := range statuses {
			client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) {
				resp := answer(r, status, "text/html", "")
				resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", long))), long
				return resp, nil
			}))
			_, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{})
			var e *lkrpc.Error
			if !errors.As(err, &e) || e.Code() != code || e.HTTPStatus != status || !strings.Contains(e.Msg(), strconv.Itoa(status)) {
				t.Errorf("%d: %v, want %s", status, err, code)
				continue
			}
			if n := strings.Count(e.Msg(), "x"); n < 100 || n > 200 {
				t.Errorf("%d: %d bytes of the body are told, want 200 at most", status, n)
			}
		}
	}
}

// A charset, and the case of the letters, do not make another type of an answer.
func TestProtobufByAnyName(t *testing.T) {
	for _, kind := range []string{"application/protobuf", "application/protobuf; charset=utf-8", "Application/Protobuf;charset=UTF-8"} {
		client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) { return answer(r, 200, kind, ""), nil }))
		if _, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A context that ends a call on its way has a code of its own, whatever the call was waiting for.
func TestCodesOfContexts(t *testing.T) {
	for name, spoil := range map[string]func(h *cloudtest.Host){
		"is not answered": func(h *cloudtest.Host) { h.Break(cloudtest.Hang()) },
		"cannot dial":     func(h *cloudtest.Host) { h.BlackHole() },
	} {
		for code, is := range map[twirp.ErrorCode]error{twirp.DeadlineExceeded: context.DeadlineExceeded, twirp.Canceled: context.Canceled} {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
				for _, h := range cloud.Regions() {
					spoil(h)
				}
				ctx, cancel := context.WithTimeout(background, 2*time.Second)
				if code == twirp.Canceled {
					ctx, cancel = context.WithCancel(background)
					time.AfterFunc(2*time.Second, cancel)
				}
				defer cancel()
				_, err := client.Egress.StartEgress(ctx, &livekit.StartEgressRequest{RoomName: "r"})
				var e *lkrpc.Error
				if !errors.As(err, &e) || e.Code() != code || !errors.Is(err, is) || len(e.Attempts) != 1 || e.RequestID == "" {
					t.Errorf("a call that %s: %v, want %s with its attempt and request id", name, err, code)
				} else if sent := name == "is not answered"; e.OutcomeUnknown != sent || e.Service != "Egress" || e.Method != "StartEgress" {
					t.Errorf("a call that %s: %s/%s, outcome unknown %t", name, e.Service, e.Method, e.OutcomeUnknown)
				}
			})
		}
	}
}

// A context that ends when the answer is here, and is not read yet, leaves open what the answer was.
func TestContextThatEndsWithTheAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) { return answer(r, 200, "application/protobuf", ""), nil }),
		lkrpc.WithFailover(failover.OnAttempt(func(context.Context, failover.Attempt) { cancel() })))
	_, err := client.Egress.StartEgress(ctx, &livekit.StartEgressRequest{RoomName: "r"})
	var e *lkrpc.Error
	if !errors.As(err, &e) || e.Code() != twirp.Canceled || !errors.Is(err, context.Canceled) || !e.OutcomeUnknown || len(e.Attempts) != 1 {
		t.Errorf("%v, want canceled with an unknown outcome", err)
	}
}

// The error of a call that was not repeated for want of budget says so, and is the server's own otherwise.
func TestSpentBudgetIsTold(t *testing.T) {
	inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
		for _, h := range cloud.Regions() {
			h.Break(cloudtest.Status(503, nil, "maintenance"), cloudtest.On(cloudtest.API))
		}
		told := 0
		for range 200 {
			_, err := client.Room.ListRooms(background, &livekit.ListRoomsRequest{})
			var e *lkrpc.Error
			if !errors.As(err, &e) || e.Code() != twirp.Unavailable || e.HTTPStatus != 503 || !strings.Contains(e.Msg(), "maintenance") {
				t.Fatalf("%v, want the server's 503", err)
			}
			spent := strings.Contains(e.Msg(), "the local retry budget is spent")
			if spent == (len(e.Attempts) == 3) {
				t.Errorf("%d attempts, and the text is %q", len(e.Attempts), e.Msg())
			}
			if spent {
				told++
			}
		}
		if told == 0 {
			t.Error("the budget was not spent: nothing was tested")
		}
	})
}
