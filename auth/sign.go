package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// MaxTokenLength is the longest token that is made or read, in bytes. It is more than the metadata and attributes that
	// LiveKit allows a participant, and less than net/http takes in a header.
	MaxTokenLength = 256 << 10
	// clockSkew is how far apart the clocks of signer and server may be: a token is valid from this long before it is signed,
	// and accepted this long before and after it is valid.
	clockSkew = time.Minute
	// shortestLifetime is one that tokens, whose times are in seconds, can tell from none.
	shortestLifetime = time.Second
)

// base64url is the encoding of tokens.
var base64url = base64.RawURLEncoding

// tokenHeader is the first part of every token made here: {"alg":"HS256","typ":"JWT"}.
const tokenHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"

// signer signs tokens with one API key.
type signer struct {
	key    string
	prefix []byte // of every payload: the issuer
	secret any    // []byte, as golang-jwt takes it
	err    error  // why there can be no token
}

func newSigner(key, secret string) *signer {
	return &signer{
		key:    key,
		prefix: appendJSON([]byte(`{"iss":`), key),
		secret: []byte(secret),
		err:    checkKeys(key, secret),
	}
}

// encode returns the JSON of the claims.
func encode(claims *ClaimGrants) ([]byte, error) {
	if claims == nil {
		return []byte("{}"), nil
	}
	if err := claims.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(claims)
	if err != nil { // protobuf's JSON of the room configuration is all that can fail
		return nil, invalidClaim("roomConfig: %v", err)
	}
	return text, nil
}

// sign returns a token with these claims, encoded, valid until lifetime from now.
func (s *signer) sign(identity string, claims []byte, now time.Time, lifetime time.Duration) (string, error) {
	payload := make([]byte, 0, len(s.prefix)+len(identity)+len(claims)+80)
	payload = append(payload, s.prefix...)
	if identity != "" {
		payload = append(payload, `,"sub":`...)
		payload = appendJSON(payload, identity)
	}
	payload = append(payload, `,"iat":`...)
	payload = strconv.AppendInt(payload, now.Unix(), 10)
	payload = append(payload, `,"nbf":`...)
	payload = strconv.AppendInt(payload, now.Add(-clockSkew).Unix(), 10)
	payload = append(payload, `,"exp":`...)
	payload = strconv.AppendInt(payload, now.Add(lifetime).Unix(), 10)
	if rest := bytes.TrimPrefix(claims, []byte("{")); len(rest) > 1 {
		payload = append(payload, ',')
		payload = append(payload, rest...)
	} else {
		payload = append(payload, '}')
	}

	token := make([]byte, 0, len(tokenHeader)+1+base64url.EncodedLen(len(payload))+1+base64url.EncodedLen(32))
	token = append(token, tokenHeader+"."...)
	token = base64url.AppendEncode(token, payload)
	signature, err := jwt.SigningMethodHS256.Sign(string(token), s.secret)
	if err != nil {
		return "", fmt.Errorf("auth: sign: %w", err)
	}
	token = append(token, '.')
	token = base64url.AppendEncode(token, signature)
	if len(token) > MaxTokenLength {
		return "", fmt.Errorf("%w: it has %d bytes, at most %d are allowed: shorten metadata, attributes or the room configuration",
			ErrTokenTooLong, len(token), MaxTokenLength)
	}
	return string(token), nil
}

func appendJSON(dst []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a string cannot fail
	return append(dst, quoted...)
}
