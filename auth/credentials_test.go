package auth_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/auth"
)

// A token for a call has the grants that were asked for and lives for ten minutes.
func TestAPIKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		creds := auth.APIKey(testKey, testSecret)
		if err := auth.CheckCredentials(creds); err != nil {
			t.Fatal(err)
		}
		now := float64(time.Now().Unix())
		base := func(more map[string]any) map[string]any {
			for name, v := range map[string]any{"iss": testKey, "iat": now, "nbf": now - 60, "exp": now + 600} {
				more[name] = v
			}
			return more
		}
		for _, c := range []struct {
			grants *auth.ClaimGrants
			want   map[string]any
		}{
			{nil, base(map[string]any{})},
			{&auth.ClaimGrants{}, base(map[string]any{})},
			{&auth.ClaimGrants{Video: &auth.VideoGrant{RoomAdmin: true, Room: "r"}}, base(map[string]any{"video": map[string]any{"roomAdmin": true, "room": "r"}})},
			{&auth.ClaimGrants{Identity: "ann"}, base(map[string]any{"identity": "ann", "sub": "ann"})},
		} {
			for range 2 { // signed, and again
				raw, err := creds.Token(background, c.grants)
				if err != nil {
					t.Fatal(err)
				}
				if got := payloadOf(t, raw); !reflect.DeepEqual(got, c.want) {
					t.Errorf("claims are %v, want %v", got, c.want)
				}
				if _, err := auth.VerifyToken(raw, auth.NewSimpleKeyProvider(testKey, testSecret)); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// Calls with the same grants share a token until it is five minutes old.
func TestTokensAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		creds := auth.APIKey(testKey, testSecret)
		token := func(room string) string {
			raw, err := creds.Token(background, &auth.ClaimGrants{Video: &auth.VideoGrant{RoomAdmin: true, Room: room}})
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		first := token("r")
		<-time.After(5*time.Minute - time.Second)
		if token("r") != first {
			t.Error("a token was signed again before it was five minutes old")
		}
		other := token("other")
		if other == first {
			t.Error("two rooms have one token")
		}
		<-time.After(time.Second)
		if again := token("r"); again == first {
			t.Error("a token was still used after five minutes")
		}
		if token("other") != other {
			t.Error("another token was signed again too")
		}
		if payloadOf(t, other)["video"].(map[string]any)["room"] != "other" {
			t.Error("a token is for another room")
		}
	})
}

// What the caller does with its grants afterwards does not change a token.
func TestGrantsStayTheCallers(t *testing.T) {
	creds := auth.APIKey(testKey, testSecret)
	grants := &auth.ClaimGrants{Video: &auth.VideoGrant{RoomAdmin: true, Room: "a"}}
	for _, room := range []string{"a", "b", "a", "b"} {
		grants.Video.Room = room
		raw, err := creds.Token(background, grants)
		if err != nil {
			t.Fatal(err)
		}
		if got := payloadOf(t, raw)["video"].(map[string]any)["room"]; got != room {
			t.Errorf("the token is for room %v, want %s", got, room)
		}
	}
}

func TestAPIKeyConcurrently(t *testing.T) {
	creds := auth.APIKey(testKey, testSecret)
	keys := auth.NewSimpleKeyProvider(testKey, testSecret)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 400 {
				room := fmt.Sprint("room-", i*(1+worker%2)) // some shared, more than are kept
				raw, err := creds.Token(background, &auth.ClaimGrants{Video: &auth.VideoGrant{RoomAdmin: true, Room: room}})
				if err != nil {
					t.Error(err)
					return
				}
				claims, err := auth.VerifyToken(raw, keys)
				if err != nil || claims.Video.Room != room {
					t.Errorf("token for %v, %v, want room %s", claims, err, room)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestStaticToken(t *testing.T) {
	raw := sign(t, auth.NewAccessToken(testKey, testSecret))
	for _, text := range []string{raw, " " + raw + "\n", "Bearer " + raw, "bearer  " + raw, "\tBEARER " + raw + " "} {
		creds := auth.StaticToken(text)
		if err := auth.CheckCredentials(creds); err != nil {
			t.Errorf("%v", err)
		}
		got, err := creds.Token(background, &auth.ClaimGrants{Video: &auth.VideoGrant{RoomList: true}})
		if err != nil || got != raw {
			t.Errorf("token is %q, %v", got, err)
		}
	}
	for text, want := range map[string]string{
		"":                                     "ErrTokenMissing",
		"  \n":                                 "ErrTokenMissing",
		"Bearer ":                              "ErrTokenMalformed",
		"no jwt":                               "ErrTokenMalformed",
		"api.example.com":                      "ErrTokenMalformed",
		"https://api.example.com/a.b":          "ErrTokenMalformed",
		testSecret:                             "ErrTokenMalformed",
		"Basic " + raw:                         "ErrTokenMalformed",
		raw + "," + raw:                        "ErrTokenMalformed",
		raw + "\nX-Header: 1":                  "ErrTokenMalformed",
		mint(t, `{"alg":"none"}`, `{}`, "", 0): "ErrTokenAlgorithm",
		strings.Repeat("a", 1<<20):             "ErrTokenTooLong",
	} {
		creds := auth.StaticToken(text)
		_, tokenErr := creds.Token(background, nil)
		for _, err := range []error{auth.CheckCredentials(creds), tokenErr} {
			wantKind(t, err, want)
			if !strings.Contains(err.Error(), "token") || strings.Contains(err.Error(), raw) {
				t.Errorf("%q: %v, want an error of the token that does not show it", text, err)
			}
		}
	}
}

// issuer are credentials of a caller's own.
type issuer struct{ err error }

func (i *issuer) Token(context.Context, *auth.ClaimGrants) (string, error) { return "x", nil }
func (i *issuer) Check() error                                             { return i.err }

type issuerFunc func() string

func (f issuerFunc) Token(context.Context, *auth.ClaimGrants) (string, error) { return f(), nil }

func TestCheckCredentials(t *testing.T) {
	for _, creds := range []auth.Credentials{nil, (*issuer)(nil), issuerFunc(nil)} {
		if err := auth.CheckCredentials(creds); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%T: %v, want that the credentials are nil", creds, err)
		}
	}
	broken := fmt.Errorf("sealed")
	if err := auth.CheckCredentials(&issuer{broken}); err != broken {
		t.Errorf("%v, want the error of the credentials' own Check", err)
	}
	for _, creds := range []auth.Credentials{&issuer{}, issuerFunc(func() string { return "x" })} {
		if err := auth.CheckCredentials(creds); err != nil {
			t.Errorf("%T: %v", creds, err)
		}
	}
}
