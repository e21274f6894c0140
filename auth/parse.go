package auth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// A token is read in two steps. Before its signature is known to be good, no more than the registered claims are.

// parser is strict: base64 has one way to write a signature, so that a token has one form that is valid.
var parser = jwt.NewParser(jwt.WithStrictDecoding())

// unverified is a token whose signature has not been checked.
type unverified struct {
	signed    string // what the signature is of
	payload   string // the middle part
	signature []byte
	header    map[string]any
	claims    jwt.RegisteredClaims
}

// checkShape says why text is no token, by its characters alone.
func checkShape(text string) error {
	switch {
	case text == "":
		return ErrTokenMissing
	case len(text) > MaxTokenLength:
		return fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrTokenTooLong, len(text), MaxTokenLength)
	}
	dots := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.':
			dots++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("%w: byte %d is %q, which no token has", ErrTokenMalformed, i+1, c)
		}
	}
	if dots != 2 {
		return fmt.Errorf("%w: it has %d parts, want 3", ErrTokenMalformed, dots+1)
	}
	return nil
}

// decode reads a token of the right shape.
func decode(text string) (*unverified, error) {
	u := &unverified{signed: text[:strings.LastIndexByte(text, '.')]}
	u.payload = u.signed[strings.IndexByte(u.signed, '.')+1:]
	token, _, err := parser.ParseUnverified(text, &u.claims)
	switch {
	case errors.Is(err, jwt.ErrTokenUnverifiable): // a name of an algorithm that golang-jwt does not know, or none
		return nil, wrongAlgorithm(token)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrTokenMalformed, err)
	case token.Method != jwt.SigningMethodHS256:
		return nil, wrongAlgorithm(token)
	}
	if _, ok := token.Header["crit"]; ok { // RFC 7515, 4.1.11: none of what it can name is understood here
		return nil, fmt.Errorf("%w: its header asks for extensions (crit)", ErrTokenMalformed)
	}
	u.header, u.signature = token.Header, token.Signature
	return u, nil
}

func wrongAlgorithm(token *jwt.Token) error {
	name, ok := token.Header["alg"].(string)
	if !ok {
		return fmt.Errorf("%w: its header has no alg", ErrTokenAlgorithm)
	}
	return fmt.Errorf("%w: its header says %q", ErrTokenAlgorithm, short(name))
}
