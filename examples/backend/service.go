package main

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
)

// service is what the handlers share. All of it is safe for concurrent use.
type service struct {
	cfg     config
	client  *lkrpc.Client
	log     *slog.Logger
	metrics *metrics
	calls   *calls
}

// clientOptions has the client report to the log and the metrics of the service.
func clientOptions(log *slog.Logger, m *metrics) []lkrpc.Option {
	return []lkrpc.Option{
		lkrpc.WithInterceptors(m.intercept),
		lkrpc.WithFailover(failover.OnAttempt(m.attempt), failover.Logger(log.With("component", "lkrpc"))),
	}
}

// newService returns the whole service as a handler. It does not close the client.
func newService(cfg config, client *lkrpc.Client, log *slog.Logger, m *metrics) (http.Handler, error) {
	s := &service{cfg: cfg, client: client, log: log, metrics: m, calls: newCalls()}
	m.gauge("backend_calls_open", "Calls that were made and whose room has not finished.", s.calls.open)
	webhook, err := auth.NewWebhookHandler(cfg.keys, s.onEvent, auth.OnWebhookError(s.onRefused))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /calls", s.postCall)
	mux.Handle("POST /webhook", webhook)
	mux.HandleFunc("GET /healthz", health)
	mux.Handle("GET /metrics", m.handler())
	return s.observed(mux), nil
}

// health says that the process serves. Whether LiveKit can be reached is not asked: to restart this service, or to take it out of
// a load balancer, would not help, and the metrics tell.
func health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "ok\n")
}
