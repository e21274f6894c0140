package auth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Inspect describes a token for people: its times, and all its claims as JSON, known here or not. It does not verify the token,
// and shows neither the signature, without which the claims are no token, nor secrets in the room configuration. White space
// around the token and "Bearer " before it are dropped.
func Inspect(token string) (string, error) {
	token = trimBearer(token)
	if err := checkShape(token); err != nil {
		return "", err
	}
	u, err := decode(token)
	if err != nil {
		return "", err
	}
	claims, err := u.shownClaims()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrTokenMalformed, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HS256 token, not verified\n")
	for _, t := range []struct {
		name string
		date *jwt.NumericDate
	}{
		{"issued", u.claims.IssuedAt},
		{"valid from", u.claims.NotBefore},
		{"valid until", u.claims.ExpiresAt},
	} {
		if t.date != nil {
			fmt.Fprintf(&b, "%s %s\n", t.name, t.date.UTC().Format(time.RFC3339))
		}
	}
	b.Write(claims)
	return b.String(), nil
}

// shownClaims returns the payload as indented JSON, sorted by name.
func (u *unverified) shownClaims() ([]byte, error) {
	payload, err := base64url.DecodeString(u.payload)
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	numbers := json.NewDecoder(bytes.NewReader(payload))
	numbers.UseNumber()
	if err := numbers.Decode(&claims); err != nil {
		return nil, err
	}
	for name := range claims {
		if strings.EqualFold(name, "roomConfig") && claims[name] != nil { // encoding/json takes any case
			claims[name] = shownConfig(claims[name])
		}
	}
	return json.MarshalIndent(claims, "", "  ")
}

// shownConfig returns a room configuration without its secrets. One that cannot be read is not shown at all.
func shownConfig(config any) any {
	text, err := json.Marshal(config)
	if err != nil {
		return hidden
	}
	var c RoomConfiguration
	if err := c.UnmarshalJSON(text); err != nil {
		return hidden
	}
	return c.hideSecrets()
}
