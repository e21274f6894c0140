package auth_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
)

// Whatever is taken for a token has a signature that another implementation agrees with, and an error is of a known kind.
func FuzzVerifyToken(f *testing.F) {
	var cases []tokenCase
	readTable(f, "tokens.json", &cases)
	for _, c := range cases {
		if raw := c.raw(f); len(raw) < 10_000 {
			f.Add(raw)
		}
	}
	everythingToken := auth.NewAccessToken(testKey, testSecret)
	everything(everythingToken)
	f.Add(sign(f, everythingToken))
	f.Fuzz(func(t *testing.T, raw string) {
		claims, err := auth.VerifyToken(raw, webhookKeys)
		if err != nil {
			wantKnownKind(t, err)
		} else {
			last := strings.LastIndexByte(raw, '.')
			mac := hmac.New(sha256.New, []byte(testSecret))
			mac.Write([]byte(raw[:last]))
			if want := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)); raw[last+1:] != want {
				t.Errorf("accepted with the signature %q, want %q", raw[last+1:], want)
			}
			_ = claims.String()
		}
		shown, err := auth.Inspect(raw)
		if last := strings.LastIndexByte(raw, '.'); err == nil && len(raw)-last > 20 && strings.Contains(shown, raw[last+1:]) {
			t.Errorf("the signature is shown in %s", shown)
		}
		if auth.CheckCredentials(auth.StaticToken(raw)) == nil && err != nil {
			t.Errorf("StaticToken takes what Inspect does not: %v", err)
		}
	})
}

func wantKnownKind(t *testing.T, err error) {
	t.Helper()
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return
		}
	}
	t.Errorf("an error of no kind: %v", err)
}

// A webhook is accepted only with the checksum of its body in a token that is signed, by both ways to receive it alike.
func FuzzReceiveWebhook(f *testing.F) {
	var cases []webhookCase
	readTable(f, "webhooks.json", &cases)
	for _, c := range cases {
		f.Add(c.authorization(f), []byte(c.Body), true)
		f.Add("", []byte(c.Body), true)
	}
	f.Fuzz(func(t *testing.T, header string, body []byte, signIt bool) {
		if signIt && header == "" { // so that the parser of events gets something to do
			header = signed(t, string(body))
		}
		r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
		r.Header["Authorization"] = []string{header}
		event, err := auth.ReceiveWebhook(r, webhookKeys)

		partsErr := auth.VerifyWebhook(header, body, webhookKeys)
		if partsErr == nil {
			_, partsErr = auth.ParseWebhookEvent(body)
		}
		if (err == nil) != (partsErr == nil) {
			t.Errorf("ReceiveWebhook: %v, in parts: %v", err, partsErr)
		}
		if err != nil {
			wantKnownKind(t, err)
			return
		}
		fields := strings.Fields(header)
		if len(fields) == 0 || event == nil {
			t.Fatalf("accepted %v with the header %q", event, header)
		}
		if sum := payloadOf(t, fields[len(fields)-1])["sha256"]; sum != sumOf(body) {
			t.Errorf("accepted with the checksum %v, want %v", sum, sumOf(body))
		}
	})
}

// Claims come out of a token as they went in, or the token is not made.
func FuzzClaims(f *testing.F) {
	f.Add("ann", "studio", "k", "v", "m")
	f.Add("", "", "", "", "")
	f.Add(`"\`, "\x00\u2028<&>", "é", "\xff", "🎉")
	f.Fuzz(func(t *testing.T, identity, room, name, value, metadata string) {
		token := auth.NewAccessToken(testKey, testSecret).SetIdentity(identity).SetMetadata(metadata).
			SetAttributes(map[string]string{name: value}).SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: room})
		raw, err := token.ToJWT()
		if err != nil {
			wantKnownKind(t, err)
			return
		}
		got, err := auth.VerifyToken(raw, webhookKeys)
		if err != nil {
			t.Fatal(err)
		}
		if got.Identity != identity || got.Metadata != metadata || got.Video.Room != room || got.Attributes[name] != value || len(got.Attributes) != 1 {
			t.Errorf("claims became %q", got)
		}
	})
}

// A key file is read whole or not at all, and an error does not show what it holds.
func FuzzKeyFile(f *testing.F) {
	for _, text := range []string{"APIa: s1\n# c\n'APIb': \"s2\" # c\n", "---\r\na:b: c:d\r\n", "APIa:\n", "APIa: 's", ": s", "\ufeffk: v"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := auth.NewFileBasedKeyProviderFromReader(strings.NewReader(text))
		if (keys == nil) != (err != nil) {
			t.Fatalf("%v with %v", keys, err)
		}
		if keys != nil && keys.Check() != nil {
			t.Errorf("a provider that was read has an error: %v", keys.Check())
		}
	})
}
