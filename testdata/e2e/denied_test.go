package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/lkrpc/lkrpc/testdata/servers"
	"github.com/twitchtv/twirp"
)

// What a token may not do is refused: by both servers, in their own words.
func TestDenied(t *testing.T) {
	real, mock := servers.LiveKit(t), servers.TestServer(t, 1)
	for name, c := range map[string]struct {
		url, key, secret string
		grant            *auth.VideoGrant // nil for what lkrpc chooses
		code             twirp.ErrorCode
		status           int
	}{
		"livekit-server, wrong secret": {real.URL, real.Key, "wrong-" + real.Secret, nil, twirp.Unauthenticated, http.StatusUnauthorized},
		"livekit-server, unknown key":  {real.URL, "unknown", real.Secret, nil, twirp.Unauthenticated, http.StatusUnauthorized},
		"livekit-server, no grant":     {real.URL, real.Key, real.Secret, &auth.VideoGrant{RoomList: true}, twirp.Unauthenticated, http.StatusUnauthorized},
		"test-server, wrong secret":    {mock.URLs[0], mock.Key, "wrong-" + mock.Secret, nil, twirp.Unauthenticated, http.StatusUnauthorized},
		"test-server, no grant":        {mock.URLs[0], mock.Key, mock.Secret, &auth.VideoGrant{RoomList: true}, twirp.PermissionDenied, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			creds := auth.APIKey(c.key, c.secret)
			if c.grant != nil {
				token, err := auth.NewAccessToken(c.key, c.secret).SetVideoGrant(c.grant).ToJWT()
				if err != nil {
					t.Fatal(err)
				}
				creds = auth.StaticToken(token)
			}
			client := newClient(t, c.url, creds)
			_, err := client.Room.CreateRoom(t.Context(), &livekit.CreateRoomRequest{Name: "r"})
			e := wantCode(t, err, c.code)
			if e.HTTPStatus != c.status || len(e.Attempts) != 1 || e.OutcomeUnknown {
				t.Errorf("status %d, %d attempts, outcome unknown %t; want %d, 1, false", e.HTTPStatus, len(e.Attempts), e.OutcomeUnknown, c.status)
			}
			if strings.Contains(err.Error(), c.secret) || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("the error holds a secret or a token: %v", err)
			}
		})
	}
}

// wantCode fails the test if an error is not lkrpc's with this code.
func wantCode(t *testing.T, err error, code twirp.ErrorCode) *lkrpc.Error {
	t.Helper()
	var e *lkrpc.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %#v, want a *lkrpc.Error", err)
	}
	if e.Code() != code {
		t.Errorf("code %s, want %s: %v", e.Code(), code, err)
	}
	return e
}
