package lkrpc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

func answerWith(r *http.Request, status int, contentType, body string) *http.Response {
	a := answer(r, status, contentType, "")
	a.Body, a.ContentLength = io.NopCloser(bytes.NewReader([]byte(body))), int64(len(body))
	return a
}

// A 2xx that is no result was a success to somebody: the phone may have rung.
func TestOutcomeOfOther2xx(t *testing.T) {
	for _, c := range []struct {
		status int
		kind   string
	}{{201, "application/protobuf"}, {203, "application/protobuf"}, {200, "application/protobuf;;"}, {200, `application/protobuf; q="x`}, {200, "text/html"}} {
		client := newTestClient(t, "https://sfu.example.com", roundTripper(func(r *http.Request) (*http.Response, error) {
			return answerWith(r, c.status, c.kind, ""), nil
		}))
		_, err := client.SIP.CreateSIPParticipant(background, &livekit.CreateSIPParticipantRequest{SipTrunkId: "t", SipCallTo: "1", RoomName: "r"})
		var e *lkrpc.Error
		if err != nil && (!errors.As(err, &e) || !e.OutcomeUnknown) {
			t.Errorf("%d %s: %v, want the outcome unknown", c.status, c.kind, err)
		}
		if c.status != 200 && err == nil {
			t.Errorf("%d %s: no error", c.status, c.kind)
		}
	}
}

// A gateway that echoes the token may write it with the escapes of JSON, or in a header.
func TestEchoedToken(t *testing.T) {
	const token = "c2VjcmV0+dG9r/ZW4tb3BhcXVl=="
	for _, c := range []struct {
		status     int
		kind, body string
	}{
		{401, "application/json", `{"code":"unauthenticated","msg":"bad token ` + token + `"}`},
		{401, "application/json", `{"code":"unauthenticated","msg":"bad token ` + strings.ReplaceAll(token, "/", `\/`) + `"}`},
		{401, "application/json", `{"code":"unauthenticated","msg":"bad token","meta":{"token":"` + strings.ReplaceAll(token, "+", `\u002B`) + `"}}`},
		{401, "application/json", `{"code":"bad ` + strings.ReplaceAll(token, "/", `\/`) + `","msg":"no"}`},
		{401, "application/json", `{"detail":"bad token ` + strings.ReplaceAll(token, "/", `\/`) + `"}`},
		{401, "application/json", `{"code":"unauthenticated","msg":"no","meta":{"token":["` + strings.ReplaceAll(token, "/", `\/`) + `"]}}`},
		{200, "text/" + token, ``},
	} {
		creds := tokens(func(context.Context, *auth.ClaimGrants) (string, error) { return token, nil })
		client, err := lkrpc.New("https://sfu.example.com", creds, lkrpc.WithHTTPTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
			return answerWith(r, c.status, c.kind, c.body), nil
		})))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Room.ListRooms(background, &livekit.ListRoomsRequest{})
		var e *lkrpc.Error
		if !errors.As(err, &e) || strings.Contains(strings.ReplaceAll(err.Error()+e.Meta("token"), `\`, ""), token) {
			t.Errorf("%d %s %s: %v", c.status, c.kind, c.body, err)
		}
	}
}

// A header in several spellings is one header, with all its values; the caller's map stays as it is.
func TestHeaderInSeveralSpellings(t *testing.T) {
	for range 20 { // in the random order of the map
		rec := &recorder{}
		client := newTestClient(t, "https://sfu.example.com", rec)
		first := append(make([]string, 0, 4), "1")
		header := http.Header{"X-A": first, "x-a": {"2"}, "X-a": {"3"}}
		ctx, err := twirp.WithHTTPRequestHeaders(background, header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Room.ListRooms(ctx, &livekit.ListRoomsRequest{}); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(slices.Values(rec.last(t).Header.Values("X-A"))); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Fatalf("sent %q", got)
		}
		if len(header) != 3 || first[:2][1] != "" {
			t.Fatalf("the caller's header became %q, %q", header, first[:2])
		}
	}
}

// A request id that did not go out is not used.
func TestRequestIDOfACallThatWasNotSent(t *testing.T) {
	sealed := true
	creds := tokens(func(context.Context, *auth.ClaimGrants) (string, error) {
		if sealed {
			return "", errors.New("the vault is sealed")
		}
		return "opaque-token", nil
	})
	rec := &recorder{}
	client, err := lkrpc.New("https://sfu.example.com", creds, lkrpc.WithHTTPTransport(rec))
	if err != nil {
		t.Fatal(err)
	}
	ctx := lkrpc.WithRequestID(background, "id")
	create := func(metadata string) error {
		_, err := client.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "r", AgentName: "a", Metadata: metadata})
		return err
	}
	wantCode(t, "sealed", create("1"), twirp.Unauthenticated)
	done, cancel := context.WithCancel(ctx)
	cancel()
	sealed = false
	if _, err := client.AgentDispatch.CreateDispatch(done, &livekit.CreateAgentDispatchRequest{Room: "r", AgentName: "a", Metadata: "0"}); err == nil {
		t.Error("a call of a cancelled context was no error")
	}
	if err := create("2"); err != nil {
		t.Error(err)
	}
	wantCode(t, "used", create("3"), twirp.InvalidArgument)
	if n := len(rec.requests()); n != 1 {
		t.Errorf("%d requests were sent, want one", n)
	}
}

// lost is an AgentDispatchService whose first answer is a failure.
type lost struct {
	livekit.AgentDispatchService
	asked int
}

func (l *lost) ListDispatch(context.Context, *livekit.ListAgentDispatchRequest) (*livekit.ListAgentDispatchResponse, error) {
	if l.asked++; l.asked == 1 {
		return nil, &lkrpc.Error{HTTPStatus: 503}
	}
	job := &livekit.Job{Id: "AJ_1", State: &livekit.JobState{Status: livekit.JobStatus_JS_RUNNING}}
	return &livekit.ListAgentDispatchResponse{AgentDispatches: []*livekit.AgentDispatch{{Id: "AD_1",
		State: &livekit.AgentDispatchState{Jobs: []*livekit.Job{job}}}}}, nil
}

// A Client of fakes needs those alone that are used.
func TestClientOfFakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &lkrpc.Client{AgentDispatch: &lost{}}
		if job, err := client.WaitForAgent(background, "r", "AD_1"); err != nil || job.GetId() != "AJ_1" {
			t.Errorf("%v, %v", job, err)
		}
	})
}
