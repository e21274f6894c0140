package auth

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Errors of keys and of tokens that are to be made. Test with errors.Is; the text of the error says more.
var (
	// ErrKeysMissing: an API key, a secret or both are empty. The text says which.
	ErrKeysMissing = errors.New("auth: API key or secret missing")
	// ErrSensitiveCredentials: a room configuration has storage secrets or stream keys, which every holder of the token could
	// read. The text names the field.
	ErrSensitiveCredentials = errors.New("auth: room configuration holds credentials")
	// ErrInvalidLifetime: a token was to be valid for less than a second.
	ErrInvalidLifetime = errors.New("auth: token lifetime too short")
	// ErrInvalidClaim: a claim has a value that LiveKit cannot read. The text names the claim.
	ErrInvalidClaim = errors.New("auth: invalid claim")
)

// Errors of tokens that were received.
var (
	// ErrTokenMissing: the token is empty.
	ErrTokenMissing = errors.New("auth: token missing")
	// ErrTokenTooLong: the token has more than MaxTokenLength bytes. Tokens longer than that are not made either.
	ErrTokenTooLong = errors.New("auth: token too long")
	// ErrTokenMalformed: the text is no JSON Web Token, or its claims are not of the types that LiveKit uses.
	ErrTokenMalformed = errors.New("auth: token malformed")
	// ErrTokenAlgorithm: the token is signed by something else than HS256, or not at all.
	ErrTokenAlgorithm = errors.New("auth: token not signed with HS256")
	// ErrTokenIssuer: the token names no API key, or one that the KeyProvider does not know.
	ErrTokenIssuer = errors.New("auth: token of an unknown issuer")
	// ErrTokenSignature: the token was signed with another secret, or changed after it was signed.
	ErrTokenSignature = errors.New("auth: token signature invalid")
	// ErrTokenNoExpiry: the token would be valid for ever, since it has no exp claim.
	ErrTokenNoExpiry = errors.New("auth: token without expiry")
	// ErrTokenExpired: the token expired more than a minute ago.
	ErrTokenExpired = errors.New("auth: token expired")
	// ErrTokenNotYetValid: the token becomes valid in more than a minute.
	ErrTokenNotYetValid = errors.New("auth: token not valid yet")
)

// Errors of webhooks. Those of tokens occur with webhooks too, since each carries one.
var (
	// ErrNoAuthHeader: the request has no Authorization header, so it is not from LiveKit, or a proxy took the header away.
	ErrNoAuthHeader = errors.New("auth: webhook without Authorization header")
	// ErrInvalidChecksum: the body is not the one that was signed, or the token was not made for a webhook.
	ErrInvalidChecksum = errors.New("auth: webhook body is not what was signed")
	// ErrWebhookNoBody: the request has no body.
	ErrWebhookNoBody = errors.New("auth: webhook without body")
	// ErrWebhookBodyRead: something read the body, or part of it, before. Whoever did can pass it to VerifyWebhook.
	ErrWebhookBodyRead = errors.New("auth: webhook body was read before")
	// ErrWebhookTooLarge: the body is larger than the limit; see MaxWebhookBody.
	ErrWebhookTooLarge = errors.New("auth: webhook body too large")
	// ErrWebhookEncoding: the body is compressed. The signature is of what LiveKit sent, which is not compressed.
	ErrWebhookEncoding = errors.New("auth: webhook body is encoded")
	// ErrWebhookMalformed: the body was signed, but is no WebhookEvent in JSON.
	ErrWebhookMalformed = errors.New("auth: webhook body malformed")
)

// checkKeys says what is wrong with an API key and a secret. It never shows the secret.
func checkKeys(key, secret string) error {
	switch {
	case key == "" && secret == "":
		return fmt.Errorf("%w: the API key and the secret are empty", ErrKeysMissing)
	case key == "":
		return fmt.Errorf("%w: the API key is empty", ErrKeysMissing)
	case secret == "":
		return fmt.Errorf("%w: the secret is empty", ErrKeysMissing)
	case !utf8.ValidString(key):
		return fmt.Errorf("auth: the API key %q is not UTF-8", key)
	case strings.TrimSpace(key) != key:
		return fmt.Errorf("auth: the API key %q begins or ends with white space: trim it", key)
	case strings.TrimSpace(secret) != secret:
		return errors.New("auth: the secret begins or ends with white space: trim it")
	}
	return nil
}

func invalidClaim(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidClaim, fmt.Sprintf(format, args...))
}
