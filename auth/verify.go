package auth

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/golang-jwt/jwt/v5"
)

// APIKeyTokenVerifier is a token that was read but not verified yet: what its methods tell may be made up by anybody, except
// for what Verify returns. Safe for concurrent use.
type APIKeyTokenVerifier struct {
	token sealed[*unverified]
}

// ParseAPIToken reads a token without verifying it; Verify does. Use it to find out which API key a token claims to be signed
// with; VerifyToken does that and verifies. The errors are ErrTokenMissing, ErrTokenTooLong, ErrTokenMalformed and
// ErrTokenAlgorithm.
func ParseAPIToken(raw string) (*APIKeyTokenVerifier, error) {
	if err := checkShape(raw); err != nil {
		return nil, err
	}
	token, err := decode(raw)
	if err != nil {
		return nil, err
	}
	return &APIKeyTokenVerifier{seal(token)}, nil
}

// APIKey returns the API key that the token claims to be signed with: its issuer.
func (v *APIKeyTokenVerifier) APIKey() string { return v.registered().Issuer }

// Identity returns the participant's identity: the token's subject or, in old tokens without one, its id.
func (v *APIKeyTokenVerifier) Identity() string {
	claims := v.registered()
	return cmp.Or(claims.Subject, claims.ID)
}

// registered returns the claims that every JWT can have.
func (v *APIKeyTokenVerifier) registered() jwt.RegisteredClaims {
	if token := v.token.open(); token != nil {
		return token.claims
	}
	return jwt.RegisteredClaims{}
}

// validator has the rules for the times of a token.
var validator = jwt.NewValidator(jwt.WithLeeway(clockSkew), jwt.WithExpirationRequired())

// Verify checks that the token is signed with this secret, names an API key and is valid now, give or take a minute, and returns
// its claims. The secret is that of APIKey: a token that is signed with another key's is refused.
//
// The errors are ErrKeysMissing for an empty secret, ErrTokenIssuer, ErrTokenSignature, ErrTokenNoExpiry, ErrTokenExpired,
// ErrTokenNotYetValid, and ErrTokenMalformed for claims of another type than LiveKit's. Claims that are unknown here are skipped.
func (v *APIKeyTokenVerifier) Verify(secret string) (*jwt.RegisteredClaims, *ClaimGrants, error) {
	if secret == "" {
		return nil, nil, fmt.Errorf("%w: the secret is empty", ErrKeysMissing)
	}
	if v.APIKey() == "" {
		return nil, nil, fmt.Errorf("%w: it names no API key", ErrTokenIssuer)
	}
	token := v.token.open()
	if err := jwt.SigningMethodHS256.Verify(token.signed, token.signature, []byte(secret)); err != nil { // in constant time
		return nil, nil, ErrTokenSignature
	}
	if nbf := token.claims.NotBefore; nbf != nil && nbf.Year() > 9999 { // so far off that comparing it overflows
		return nil, nil, fmt.Errorf("%w: it is valid from a year beyond 9999", ErrTokenNotYetValid)
	}
	if err := validator.Validate(token.claims); err != nil {
		return nil, nil, timeError(err, &token.claims)
	}
	payload, err := base64url.DecodeString(token.payload)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrTokenMalformed, err)
	}
	var all struct {
		jwt.RegisteredClaims
		ClaimGrants
	}
	if err := json.Unmarshal(payload, &all); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrTokenMalformed, err)
	}
	all.Identity = v.Identity()
	return &all.RegisteredClaims, &all.ClaimGrants, nil
}

// timeError tells the ways apart in which a token can be invalid now.
func timeError(err error, claims *jwt.RegisteredClaims) error {
	switch {
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return ErrTokenNoExpiry
	case errors.Is(err, jwt.ErrTokenExpired):
		return fmt.Errorf("%w: it was valid until %v", ErrTokenExpired, claims.ExpiresAt)
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return fmt.Errorf("%w: it is valid from %v; do the clocks agree?", ErrTokenNotYetValid, claims.NotBefore)
	}
	return fmt.Errorf("%w: %w", ErrTokenMalformed, err)
}

// VerifyToken reads a token, finds the secret of the API key that it names, and verifies it: see ParseAPIToken and Verify. A key
// that the provider does not know is ErrTokenIssuer.
func VerifyToken(raw string, keys KeyProvider) (*ClaimGrants, error) {
	if err := CheckKeyProvider(keys); err != nil {
		return nil, err
	}
	v, err := ParseAPIToken(raw)
	if err != nil {
		return nil, err
	}
	secret := keys.GetSecret(v.APIKey())
	if v.APIKey() == "" || secret == "" {
		return nil, fmt.Errorf("%w: no secret is known for its API key %q", ErrTokenIssuer, short(v.APIKey()))
	}
	_, claims, err := v.Verify(secret)
	return claims, err
}

// String names the API key and the identity. It does not hold the token.
func (v *APIKeyTokenVerifier) String() string {
	return fmt.Sprintf("auth.APIKeyTokenVerifier(%q, %q, unverified)", short(v.APIKey()), short(v.Identity()))
}

// Format prints String for every verb.
func (v *APIKeyTokenVerifier) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.String()) }

// LogValue logs String.
func (v *APIKeyTokenVerifier) LogValue() slog.Value { return slog.StringValue(v.String()) }
