package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/twitchtv/twirp"
)

// statusClientGone is what logs and metrics show when the client did not wait for the answer. nginx began it.
const statusClientGone = 499

// leastRetryAfter is how long a client is asked to wait where LiveKit does not say.
const leastRetryAfter = 2 * time.Second

// failure is an answer that is an error. Its text is for the client: it holds nothing of LiveKit's errors, which are logged.
type failure struct {
	status     int
	retryAfter time.Duration // 0: the answer does not say

	Message string `json:"error"`
	// OutcomeUnknown: an agent may have been dispatched all the same. The same request with the same Idempotency-Key makes sure.
	OutcomeUnknown bool   `json:"outcome_unknown"`
	RequestID      string `json:"request_id"` // to ask the operators with
}

func (f *failure) Error() string { return f.Message }

func invalid(format string, args ...any) error {
	return &failure{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// fail answers with an error, and logs what the client is not told.
func (s *service) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := failureOf(err)
	f.RequestID = requestID(r.Context())
	level := slog.LevelInfo
	if f.status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	s.log.Log(r.Context(), level, "refused or failed", "status", f.status, "outcome_unknown", f.OutcomeUnknown, "error", err.Error())
	if f.retryAfter > 0 {
		seconds := (f.retryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	writeJSON(w, f.status, f)
}

// failureOf chooses the answer for an error of EnsureDispatch, or of this service.
func failureOf(err error) *failure {
	var own *failure
	if errors.As(err, &own) {
		return &failure{status: own.status, Message: own.Message}
	}
	var e *lkrpc.Error
	if !errors.As(err, &e) {
		return &failure{status: http.StatusInternalServerError, Message: "internal error"}
	}
	f := &failure{status: http.StatusBadGateway, Message: "LiveKit did not do it", OutcomeUnknown: e.OutcomeUnknown}
	switch e.Code() {
	case twirp.Unavailable, twirp.ResourceExhausted:
		f.status, f.Message = http.StatusServiceUnavailable, "LiveKit cannot be reached, or is busy"
		f.retryAfter = max(e.RetryAfter, leastRetryAfter)
	case twirp.DeadlineExceeded, twirp.Canceled:
		f.status, f.Message = http.StatusGatewayTimeout, "LiveKit did not answer in time"
		f.retryAfter = leastRetryAfter
		if errors.Is(err, context.Canceled) {
			f.status = statusClientGone
		}
	case twirp.InvalidArgument, twirp.Malformed, twirp.OutOfRange:
		f.status, f.Message = http.StatusBadRequest, "LiveKit does not accept the request"
	case twirp.FailedPrecondition: // the dispatch that was made with this key is over
		f.status, f.Message = http.StatusConflict, errKeyEnded.Message
	case twirp.Unauthenticated, twirp.PermissionDenied: // of this service, not of its client
		f.Message = "LiveKit does not accept this service"
	}
	if f.OutcomeUnknown {
		f.Message += "; an agent may have been dispatched all the same: send the request again with the same " + keyHeader
	}
	return f
}
