package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twitchtv/twirp"
)

// metrics is what Prometheus reads. Safe for concurrent use.
type metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.CounterVec
	dispatches *prometheus.CounterVec
	attempts   *prometheus.CounterVec
	calls      *prometheus.CounterVec
	durations  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counter("backend_http_requests_total",
			"Requests answered, by route and HTTP status.", "route", "code"),
		dispatches: counter("backend_dispatches_total",
			"Agents asked for, by result: created, found, failed, unknown.", "result"),
		attempts: counter("livekit_attempts_total",
			"HTTP requests sent to LiveKit, by method, host and what each came to.", "method", "host", "reason"),
		calls: counter("livekit_calls_total",
			"Calls to LiveKit, by method, Twirp code and whether a failure may have taken effect.", "method", "code", "outcome_unknown"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "livekit_call_duration_seconds", Help: "Time of calls to LiveKit with all their attempts, by method.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30},
		}, []string{"method"}),
	}
	m.registry.MustRegister(m.requests, m.dispatches, m.attempts, m.calls, m.durations,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// gauge adds a number that is asked for when it is read.
func (m *metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

func (m *metrics) request(route string, status int) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

// dispatch counts what became of an EnsureDispatch, which is several calls.
func (m *metrics) dispatch(created bool, err error) {
	result := "found"
	var failed *lkrpc.Error
	switch {
	case errors.As(err, &failed) && failed.OutcomeUnknown:
		result = "unknown"
	case err != nil:
		result = "failed"
	case created:
		result = "created"
	}
	m.dispatches.WithLabelValues(result).Inc()
}

// attempt is for failover.OnAttempt.
func (m *metrics) attempt(ctx context.Context, a failover.Attempt) {
	host := a.Origin
	if u, err := url.Parse(a.Origin); err == nil {
		host = u.Host
	}
	reason, _, _ := strings.Cut(a.Reason, ";") // what follows is why there was no other attempt
	m.attempts.WithLabelValues(methodOf(ctx), host, reason).Inc()
}

// intercept is for lkrpc.WithInterceptors.
func (m *metrics) intercept(next twirp.Method) twirp.Method {
	return func(ctx context.Context, req any) (any, error) {
		start := time.Now()
		resp, err := next(ctx, req)
		method, code, unknown := methodOf(ctx), "ok", false
		var e *lkrpc.Error
		if errors.As(err, &e) {
			code, unknown = string(e.Code()), e.OutcomeUnknown
		}
		m.calls.WithLabelValues(method, code, strconv.FormatBool(unknown)).Inc()
		m.durations.WithLabelValues(method).Observe(time.Since(start).Seconds())
		return resp, err
	}
}

// methodOf is the method that a context of Twirp's is for: "RoomService/ListRooms".
func methodOf(ctx context.Context) string {
	service, _ := twirp.ServiceName(ctx)
	method, _ := twirp.MethodName(ctx)
	return service + "/" + method
}
