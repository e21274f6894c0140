package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// OnWebhookError gives a webhook handler a function that hears of each webhook which failed, and why: to log it, say. The answer
// to the sender has no more than a status. The function may be called from several goroutines at a time.
func OnWebhookError(f func(r *http.Request, err error)) WebhookOption {
	return func(cfg *webhookConfig) error {
		if f == nil {
			return errors.New("auth: OnWebhookError(nil)")
		}
		cfg.onError = f
		return nil
	}
}

// NewWebhookHandler returns an HTTP handler that receives webhooks as ReceiveWebhook does and passes each event on. It answers
// 200 when handle returns nil; 500 when it returns an error, upon which LiveKit sends the event again; 401 to what is not signed
// right; 405 to what is not POST; 413 and 415 to bodies that are too large or compressed; 400 to what is no event.
//
// handle gets the request's context. It sees an event again that LiveKit sends again, so it should know those that it has dealt
// with by their Id: see ReceiveWebhook. LiveKit waits for the answer, so longer work belongs elsewhere.
func NewWebhookHandler(keys KeyProvider, handle func(context.Context, *livekit.WebhookEvent) error, opts ...WebhookOption) (
	http.Handler, error) {
	if err := CheckKeyProvider(keys); err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, errors.New("auth: the webhook function is nil")
	}
	cfg, err := newWebhookConfig(opts)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		if status, err := cfg.serve(r, keys, handle); err != nil {
			cfg.onError(r, err)
			http.Error(w, http.StatusText(status), status)
		}
	}), nil
}

// serve returns the status to answer with where there is an error.
func (cfg webhookConfig) serve(r *http.Request, keys KeyProvider, handle func(context.Context, *livekit.WebhookEvent) error) (
	status int, err error) {
	body, err := cfg.read(r, keys)
	if err != nil {
		return webhookStatus(err), err
	}
	event, err := ParseWebhookEvent(body)
	if err != nil {
		return webhookStatus(err), err
	}
	return http.StatusInternalServerError, handle(r.Context(), event)
}

// webhookStatus is the HTTP status for an error of ReceiveWebhook.
func webhookStatus(err error) int {
	is := func(kinds ...error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
	switch {
	case is(ErrWebhookTooLarge):
		return http.StatusRequestEntityTooLarge
	case is(ErrWebhookEncoding):
		return http.StatusUnsupportedMediaType
	case is(ErrWebhookBodyRead, ErrKeysMissing): // not the sender's fault
		return http.StatusInternalServerError
	case is(ErrNoAuthHeader, ErrInvalidChecksum, ErrTokenTooLong, ErrTokenMalformed, ErrTokenAlgorithm, ErrTokenIssuer,
		ErrTokenSignature, ErrTokenNoExpiry, ErrTokenExpired, ErrTokenNotYetValid):
		return http.StatusUnauthorized
	}
	return http.StatusBadRequest
}
