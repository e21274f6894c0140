package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// defaultWebhookBody is how much of a webhook's body is read.
const defaultWebhookBody = 1 << 20

// WebhookOption changes how webhooks are received.
type WebhookOption func(*webhookConfig) error

type webhookConfig struct {
	maxBody int64
	onError func(*http.Request, error)
}

func newWebhookConfig(opts []WebhookOption) (webhookConfig, error) {
	cfg := webhookConfig{maxBody: defaultWebhookBody, onError: func(*http.Request, error) {}}
	for i, opt := range opts {
		if opt == nil {
			return cfg, fmt.Errorf("auth: webhook option %d is nil", i+1)
		}
		if err := opt(&cfg); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// MaxWebhookBody sets how large a webhook's body may be, in bytes, up to 1 GiB. The default is 1 MiB.
func MaxWebhookBody(bytes int64) WebhookOption {
	return func(cfg *webhookConfig) error {
		if bytes < 1 || bytes > 1<<30 {
			return fmt.Errorf("auth: MaxWebhookBody(%d): want 1 to %d", bytes, 1<<30)
		}
		cfg.maxBody = bytes
		return nil
	}
}

// ReceiveWebhook verifies a webhook from LiveKit and returns its event. Fields, enum values and events that are unknown here,
// since they are of a later LiveKit, are no error: look at Event before anything else.
//
// LiveKit sends a webhook again when the answer is an error or is lost, and events can come in another order than they happened.
// So keep the Id of each event for a day or so and answer 200 to one that was seen before without doing its work again; do this
// in one step with the work where that matters, in one transaction, say. This also makes a recorded webhook that somebody sends
// again harmless.
//
// The body is read only once the token in the Authorization header is known to be good, and not past 1 MiB (see MaxWebhookBody).
// Nothing else may read it before, as middlewares that log or parse bodies do. Closing it is left to net/http's server. The errors
// are those of VerifyToken, and ErrNoAuthHeader, ErrInvalidChecksum and the ones that begin with ErrWebhook.
func ReceiveWebhook(r *http.Request, keys KeyProvider, opts ...WebhookOption) (*livekit.WebhookEvent, error) {
	body, err := ReadWebhook(r, keys, opts...)
	if err != nil {
		return nil, err
	}
	return ParseWebhookEvent(body)
}

// ReadWebhook is the first half of ReceiveWebhook: it returns the verified body, as it was sent.
func ReadWebhook(r *http.Request, keys KeyProvider, opts ...WebhookOption) ([]byte, error) {
	cfg, err := newWebhookConfig(opts)
	if err != nil {
		return nil, err
	}
	return cfg.read(r, keys)
}

func (cfg webhookConfig) read(r *http.Request, keys KeyProvider) ([]byte, error) {
	sum, err := signedSum(r.Header.Get("Authorization"), keys)
	if err != nil {
		return nil, err
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, fmt.Errorf("%w: Content-Encoding is %q; LiveKit sends none, so did a proxy compress it?", ErrWebhookEncoding, short(e))
	}
	body, err := readBody(r, cfg.maxBody)
	if err != nil {
		return nil, err
	}
	if err := checkSum(sum, body); err != nil {
		return nil, err
	}
	return body, nil
}

// VerifyWebhook verifies a webhook whose body was read already: with the value of the Authorization header, and the body as it
// was sent, to the byte. ParseWebhookEvent then reads the event. See ReceiveWebhook for the errors.
func VerifyWebhook(authorization string, body []byte, keys KeyProvider) error {
	sum, err := signedSum(authorization, keys)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return ErrWebhookNoBody
	}
	return checkSum(sum, body)
}

// ParseWebhookEvent reads a webhook's body, which VerifyWebhook or ReadWebhook has verified. What is unknown here is skipped.
func ParseWebhookEvent(body []byte) (*livekit.WebhookEvent, error) {
	event := &livekit.WebhookEvent{}
	if err := readJSON(body, event); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWebhookMalformed, err)
	}
	return event, nil
}

// signedSum returns the checksum of the body that the token in the header is for.
func signedSum(authorization string, keys KeyProvider) (string, error) {
	token := trimBearer(authorization)
	if token == "" {
		return "", ErrNoAuthHeader
	}
	claims, err := VerifyToken(token, keys)
	if err != nil {
		return "", err
	}
	if claims.Sha256 == "" { // a participant's token, say: anybody may have one
		return "", fmt.Errorf("%w: the token has no sha256 claim, so it was not made for a webhook", ErrInvalidChecksum)
	}
	return claims.Sha256, nil
}

func checkSum(signed string, body []byte) error {
	sum := sha256.Sum256(body)
	if subtle.ConstantTimeCompare([]byte(signed), []byte(base64.StdEncoding.EncodeToString(sum[:]))) != 1 {
		return fmt.Errorf("%w: its SHA-256 differs; did something on the way change it?", ErrInvalidChecksum)
	}
	return nil
}

// readBody reads the whole body of a request, of that many bytes at most.
func readBody(r *http.Request, most int64) ([]byte, error) {
	if r.Body == nil {
		return nil, ErrWebhookNoBody
	}
	if r.ContentLength > most {
		return nil, fmt.Errorf("%w: %d bytes; at most %d are read, see MaxWebhookBody", ErrWebhookTooLarge, r.ContentLength, most)
	}
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead) // it is negative where it is not known
	n, err := body.ReadFrom(io.LimitReader(r.Body, most+1))
	var limit *http.MaxBytesError
	switch {
	case n > most || errors.As(err, &limit):
		return nil, fmt.Errorf("%w: at most %d bytes are read, see MaxWebhookBody", ErrWebhookTooLarge, most)
	case errors.Is(err, http.ErrBodyReadAfterClose):
		return nil, ErrWebhookBodyRead
	case err != nil:
		return nil, fmt.Errorf("auth: read webhook body: %w", err)
	case n < r.ContentLength:
		return nil, fmt.Errorf("%w: %d of %d bytes are left", ErrWebhookBodyRead, n, r.ContentLength)
	case n == 0:
		return nil, ErrWebhookNoBody
	}
	return body.Bytes(), nil
}
