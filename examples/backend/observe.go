package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"time"
)

type requestIDKey struct{}

// requestID is the id of the HTTP request that a context belongs to, "" for none.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// observed puts around all handlers what concerns every request: an id, a line in the log, a count. The id is the request's
// Idempotency-Key, so that retries have the same, or a new one; the answer has it as X-Request-Id.
func (s *service) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id, err := idempotencyKey(r)
		if err != nil || id == "" {
			id = rand.Text()
		}
		w.Header().Set("X-Request-Id", id)
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		noted := &statusWriter{ResponseWriter: w}
		next.ServeHTTP(noted, r)

		status, route := cmp.Or(noted.status, http.StatusOK), cmp.Or(r.Pattern, "none")
		s.metrics.request(route, status)
		level := slog.LevelInfo
		if r.Method == http.MethodGet { // probes and scrapes
			level = slog.LevelDebug
		}
		s.log.Log(r.Context(), level, "request", "route", route, "status", status, "duration_ms", time.Since(start).Milliseconds())
	})
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int // 0: none was written
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets an http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// newLogger writes JSON, with the id of the HTTP request in every record that belongs to one. So the records of the LiveKit client
// have it too; their own request_id is that of one call to LiveKit.
func newLogger(w io.Writer) *slog.Logger {
	return slog.New(contextHandler{slog.NewJSONHandler(w, nil)})
}

type contextHandler struct{ slog.Handler }

func (h contextHandler) Handle(ctx context.Context, record slog.Record) error {
	if id := requestID(ctx); id != "" {
		record.AddAttrs(slog.String("http_request_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(attrs)}
}

func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name)}
}
