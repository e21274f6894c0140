package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
)

// callLifetime is how long a token that is signed for one call is valid.
const callLifetime = 10 * time.Minute

// Credentials give the token of an API call. Safe for concurrent use.
//
// Implement it to get tokens from elsewhere. If it also has a method Check() error, CheckCredentials and so lkrpc.New call it.
type Credentials interface {
	// Token returns a token with these grants: the text alone, without "Bearer " before it or a line break after it. The grants
	// are those that the call needs, and no more; they belong to the caller. ctx is the call's, with a deadline only if its caller
	// gave one: return when it ends, since nothing else ends the wait for a token.
	Token(ctx context.Context, grants *ClaimGrants) (string, error)
}

// CheckCredentials says what is wrong with credentials: nil, an empty key, secret or token, text that is no token.
func CheckCredentials(c Credentials) error {
	if v := reflect.ValueOf(c); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return errors.New("auth: the credentials are nil: use auth.APIKey or auth.StaticToken")
	}
	if c, ok := c.(interface{ Check() error }); ok {
		return c.Check()
	}
	return nil
}

// APIKey are credentials that sign tokens with an API key and its secret, one for each set of grants, valid for ten minutes. Calls
// with the same grants share a token while it is less than five minutes old.
//
// That the key or the secret is empty is an error of CheckCredentials and of Token.
func APIKey(key, secret string) Credentials {
	s := newSigner(key, secret)
	return &apiKey{key: key, err: s.err, signer: seal(s), tokens: seal(&tokenCache{})}
}

type apiKey struct {
	key    string
	err    error // why there can be no token
	signer sealed[*signer]
	tokens sealed[*tokenCache]
}

func (k *apiKey) Check() error { return k.err }

func (k *apiKey) Token(_ context.Context, grants *ClaimGrants) (string, error) {
	if k.err != nil {
		return "", k.err
	}
	identity := ""
	if grants != nil {
		identity = grants.Identity
		if err := grants.RoomConfig.CheckCredentials(); err != nil {
			return "", err
		}
	}
	claims, err := encode(grants)
	if err != nil {
		return "", err
	}
	tokens, now := k.tokens.open(), time.Now()
	if token, ok := tokens.get(claims, now); ok {
		return token, nil
	}
	token, err := k.signer.open().sign(identity, claims, now, callLifetime)
	if err != nil {
		return "", err
	}
	tokens.put(claims, token, now)
	return token, nil
}

func (k *apiKey) String() string             { return "auth.APIKey(" + k.key + ", " + hidden + ")" }
func (k *apiKey) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }
func (k *apiKey) LogValue() slog.Value       { return slog.StringValue(k.String()) }

// StaticToken are credentials with a ready-made token, which serves for every call: it needs the grants of all of them, and
// whoever made it replaces it before it expires. White space around it and "Bearer " before it are dropped. Its signature is not
// checked, which would take the secret.
//
// That it is empty, or no JSON Web Token, is an error of CheckCredentials and of Token.
func StaticToken(token string) Credentials {
	token = trimBearer(token)
	return &staticToken{token: seal(token), err: checkStatic(token)}
}

type staticToken struct {
	token sealed[string]
	err   error // why it is no token
}

func checkStatic(token string) error {
	if err := checkShape(token); err != nil {
		return err
	}
	_, err := decode(token)
	return err
}

func (s *staticToken) Check() error { return s.err }

func (s *staticToken) Token(context.Context, *ClaimGrants) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	return s.token.open(), nil
}

func (s *staticToken) String() string             { return "auth.StaticToken(" + hidden + ")" }
func (s *staticToken) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }
func (s *staticToken) LogValue() slog.Value       { return slog.StringValue(s.String()) }

// trimBearer returns the token of an Authorization header, which may have the scheme before it or not.
func trimBearer(text string) string {
	const scheme = "Bearer "
	text = strings.TrimSpace(text)
	if len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
		text = strings.TrimSpace(text[len(scheme):])
	}
	return text
}
