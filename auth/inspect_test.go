package auth_test

import (
	"crypto"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := sign(t, auth.NewAccessToken(testKey, testSecret).SetIdentity("ann").
			SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio"}).
			SetAgents(&livekit.RoomAgentDispatch{AgentName: "scribe"}))
		const want = `HS256 token, not verified
issued 2000-01-01T00:00:00Z
valid from 1999-12-31T23:59:00Z
valid until 2000-01-01T06:00:00Z
{
  "exp": 946706400,
  "iat": 946684800,
  "identity": "ann",
  "iss": "APItestkey",
  "nbf": 946684740,
  "roomConfig": {
    "agents": [
      {
        "agentName": "scribe"
      }
    ]
  },
  "sub": "ann",
  "video": {
    "room": "studio",
    "roomJoin": true
  }
}`
		for _, text := range []string{raw, "Bearer " + raw + "\n"} {
			if got, err := auth.Inspect(text); err != nil || got != want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
		}
	})
}

// What LiveKit's servers would refuse is shown all the same, so that one can see why; what is no token is an error.
func TestInspectOddTokens(t *testing.T) {
	for name, c := range map[string]struct{ payload, says, not string }{
		"unknown claims":    {`{"later":{"x":[1,2.50]}}`, "2.50", ""},
		"no times":          {`{"iss":"k"}`, `"iss": "k"`, "valid"},
		"expired long ago":  {`{"exp":0}`, "valid until 1970-01-01T00:00:00Z", ""},
		"odd config":        {`{"roomConfig":"hush"}`, "[hidden]", "hush"},
		"config of a kind":  {`{"roomconfig":{"egress":{"tracks":{"s3":{"secret":"hush"}}}}}`, "[hidden]", "hush"},
		"unreadable config": {`{"roomConfig":{"egress":{"tracks":{"s3":{"secret":["hush"]}}}}}`, "[hidden]", "hush"},
		"config null":       {`{"roomConfig":null}`, `"roomConfig": null`, ""},
		"claims null":       {`null`, "null", ""},
	} {
		got, err := auth.Inspect(mint(t, `{"alg":"HS256"}`, c.payload, testSecret, crypto.SHA256))
		if err != nil || !strings.Contains(got, c.says) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %s, %v; want it to say %q and not %q", name, got, err, c.says, c.not)
		}
	}
	for text, want := range map[string]string{
		"": "ErrTokenMissing", "x": "ErrTokenMalformed", "a.b.c": "ErrTokenMalformed",
		mint(t, `{"alg":"none"}`, `{}`, "", 0):                               "ErrTokenAlgorithm",
		mint(t, `{"alg":"HS256"}`, `[]`, testSecret, crypto.SHA256):          "ErrTokenMalformed",
		mint(t, `{"alg":"HS256"}`, `{"exp":"x"}`, testSecret, crypto.SHA256): "ErrTokenMalformed",
	} {
		_, err := auth.Inspect(text)
		wantKind(t, err, want)
	}
}
