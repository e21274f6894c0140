package auth_test

import (
	"crypto"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/auth"
)

// tokenCase is a token that somebody else made.
type tokenCase struct {
	Name    string
	Header  *string          // nil: {"alg":"HS256","typ":"JWT"}
	Claims  map[string]any   // the payload, with
	Times   map[string]int64 // these claims added, in seconds from now
	Payload *string          // in place of Claims and Times
	Secret  *string          // nil: testSecret
	Hash    string           // "": HS256; "HS512", "none"
	Token   *string          // the token itself, in place of all the above,
	Repeat  int              // so many times
	Prefix  string
	Suffix  string
	Error   string // "" for a token that is accepted
}

func (c tokenCase) raw(t testing.TB) string {
	if c.Token != nil {
		return strings.Repeat(*c.Token, max(1, c.Repeat))
	}
	or := func(p *string, otherwise string) string {
		if p == nil {
			return otherwise
		}
		return *p
	}
	claims := maps.Clone(c.Claims)
	for name, offset := range c.Times {
		claims[name] = time.Now().Unix() + offset
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	hash := map[string]crypto.Hash{"": crypto.SHA256, "HS512": crypto.SHA512, "none": 0}[c.Hash]
	token := mint(t, or(c.Header, `{"alg":"HS256","typ":"JWT"}`), or(c.Payload, string(payload)), or(c.Secret, testSecret), hash)
	return c.Prefix + token + c.Suffix
}

func TestTokens(t *testing.T) {
	var cases []tokenCase
	readTable(t, "tokens.json", &cases)
	keys := auth.NewSimpleKeyProvider(testKey, testSecret)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw := c.raw(t)
				claims, err := auth.VerifyToken(raw, keys)
				wantKind(t, err, c.Error)
				if err != nil {
					if claims != nil {
						t.Errorf("there are claims with the error: %v", claims)
					}
					if len(raw) > 30 && strings.Contains(err.Error(), raw[len(raw)-30:]) {
						t.Errorf("the error shows the token: %v", err)
					}
					return
				}
				if claims.Identity != "ann" || !claims.Video.RoomJoin || claims.Video.Room != "studio" {
					t.Errorf("claims are %v", claims)
				}
			})
		})
	}
}

// Every character of a token counts: none can be another.
func TestOneCharacterChanged(t *testing.T) {
	raw := sign(t, auth.NewAccessToken(testKey, testSecret).SetIdentity("ann"))
	keys := auth.NewSimpleKeyProvider(testKey, testSecret)
	if _, err := auth.VerifyToken(raw, keys); err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for _, c := range []byte("Aa9_-.") {
			if raw[i] == c {
				continue
			}
			changed := []byte(raw)
			changed[i] = c
			if _, err := auth.VerifyToken(string(changed), keys); err == nil {
				t.Errorf("character %d can be %q", i, c)
			}
		}
		if _, err := auth.VerifyToken(raw[:i], keys); err == nil {
			t.Errorf("%d of %d characters are enough", i, len(raw))
		}
	}
	for c := range 256 { // the last has bits that mean nothing
		if last := raw[:len(raw)-1] + string([]byte{byte(c)}); last != raw {
			if _, err := auth.VerifyToken(last, keys); err == nil {
				t.Errorf("the last character can be %q", byte(c))
			}
		}
	}
}

// What the caller gets from Verify is its own.
func TestVerifyTwice(t *testing.T) {
	v, err := auth.ParseAPIToken(sign(t, auth.NewAccessToken(testKey, testSecret).SetIdentity("ann").SetAttributes(map[string]string{"k": "v"})))
	if err != nil {
		t.Fatal(err)
	}
	registered, claims, err := v.Verify(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	claims.Identity, claims.Attributes["k"] = "changed", "changed"
	registered.Issuer, registered.ExpiresAt.Time = "changed", time.Time{}
	registered, claims, err = v.Verify(testSecret)
	if err != nil || claims.Identity != "ann" || claims.Attributes["k"] != "v" || registered.Issuer != testKey || registered.ExpiresAt.IsZero() {
		t.Errorf("the second time: %v, %v, %v", registered, claims, err)
	}
}

// A token is valid from a minute before it is made until a minute after its lifetime, by the clock of whoever verifies it.
func TestTokenLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		raw := sign(t, auth.NewAccessToken(testKey, testSecret).SetValidFor(90*time.Second))
		keys := auth.NewSimpleKeyProvider(testKey, testSecret)
		for _, at := range []struct {
			after time.Duration
			want  string
		}{
			{0, ""}, {90 * time.Second, ""}, {149 * time.Second, ""}, {150 * time.Second, "ErrTokenExpired"}, {time.Hour, "ErrTokenExpired"},
		} {
			<-time.After(at.after - time.Since(begin))
			_, err := auth.VerifyToken(raw, keys)
			wantKind(t, err, at.want)
		}
	})
}

func TestLifetimes(t *testing.T) {
	for _, c := range []struct {
		lifetime time.Duration
		seconds  float64 // 0 for an error
	}{
		{0, 6 * 3600}, {time.Second, 1}, {1500 * time.Millisecond, 1}, {10 * time.Minute, 600}, {365 * 24 * time.Hour, 365 * 24 * 3600},
		{-1, 0}, {-time.Hour, 0}, {1, 0}, {time.Second - 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			raw, err := auth.NewAccessToken(testKey, testSecret).SetValidFor(c.lifetime).ToJWT()
			if c.seconds == 0 {
				wantKind(t, err, "ErrInvalidLifetime")
				if raw != "" || !strings.Contains(err.Error(), c.lifetime.String()) {
					t.Errorf("%q, %v, want an error that names %v", raw, err, c.lifetime)
				}
				return
			}
			wantKind(t, err, "")
			p, now := payloadOf(t, raw), float64(time.Now().Unix())
			if p["exp"] != now+c.seconds || p["iat"] != now || p["nbf"] != now-60 {
				t.Errorf("lifetime %v: exp %v, iat %v, nbf %v at %v", c.lifetime, p["exp"], p["iat"], p["nbf"], now)
			}
		})
	}
}

// A key or secret that is missing is an error that says which, and never a token.
func TestKeysMissing(t *testing.T) {
	for _, c := range []struct{ key, secret, says, not string }{
		{"", testSecret, "API key is empty", "secret is"},
		{testKey, "", "secret is empty", "API key is"},
		{"", "", "API key and the secret are empty", "-"},
	} {
		creds := auth.APIKey(c.key, c.secret)
		_, tokenErr := creds.Token(background, &auth.ClaimGrants{})
		_, jwtErr := auth.NewAccessToken(c.key, c.secret).SetIdentity("ann").ToJWT()
		_, verifyErr := auth.VerifyToken("x", auth.NewSimpleKeyProvider(c.key, c.secret))
		for _, err := range []error{auth.CheckCredentials(creds), tokenErr, jwtErr, verifyErr} {
			wantKind(t, err, "ErrKeysMissing")
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.not) {
				t.Errorf("%v, want %q", err, c.says)
			}
		}
	}
	v, err := auth.ParseAPIToken(sign(t, auth.NewAccessToken(testKey, testSecret)))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = v.Verify("")
	wantKind(t, err, "ErrKeysMissing")

	for _, c := range []struct{ key, secret, says string }{
		{testKey, testSecret + "\n", "secret begins or ends with white space"},
		{" " + testKey, testSecret, "API key"},
		{"a\xff", testSecret, "UTF-8"},
	} {
		raw, err := auth.NewAccessToken(c.key, c.secret).ToJWT()
		if raw != "" || err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%q, %v, want an error that says %s", raw, err, c.says)
		}
	}
}

// The zero values of the exported types are useless but harmless.
func TestZeroValues(t *testing.T) {
	var token auth.AccessToken
	_, err := token.SetIdentity("ann").SetAgents().SetAttributes(map[string]string{"a": "b"}).ToJWT()
	wantKind(t, err, "ErrKeysMissing")

	var v auth.APIKeyTokenVerifier
	_, _, err = v.Verify(testSecret)
	wantKind(t, err, "ErrTokenIssuer")
	if v.APIKey() != "" || v.Identity() != "" {
		t.Errorf("%v has a key or an identity", &v)
	}

	var simple auth.SimpleKeyProvider
	wantKind(t, simple.Check(), "ErrKeysMissing")
	var file auth.FileBasedKeyProvider
	wantKind(t, file.Check(), "ErrKeysMissing")
	if simple.GetSecret("") != "" || file.GetSecret("") != "" || file.NumKeys() != 0 {
		t.Error("a zero key provider has a secret")
	}
	_ = token.String() + v.String() + simple.String() + file.String()
}

// No longer tokens are made than are read.
func TestLongestToken(t *testing.T) {
	keys := auth.NewSimpleKeyProvider(testKey, testSecret)
	raw := sign(t, auth.NewAccessToken(testKey, testSecret).SetMetadata(strings.Repeat("m", 64<<10)).
		SetAttributes(map[string]string{"a": strings.Repeat("a", 64<<10)}))
	if _, err := auth.VerifyToken(raw, keys); err != nil {
		t.Errorf("a token of %d bytes: %v", len(raw), err)
	}
	raw, err := auth.NewAccessToken(testKey, testSecret).SetMetadata(strings.Repeat("m", 200<<10)).ToJWT()
	wantKind(t, err, "ErrTokenTooLong")
	if raw != "" || !errors.Is(err, auth.ErrTokenTooLong) {
		t.Errorf("a token of %d bytes was made", len(raw))
	}
}
