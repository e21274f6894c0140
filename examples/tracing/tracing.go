package main

import (
	"context"
	"net/http"

	"github.com/lkrpc/lkrpc"
	"github.com/twitchtv/twirp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// scope names what makes the spans of calls.
const scope = "github.com/lkrpc/lkrpc/examples/tracing"

// tracing returns the options that trace a client: a span for each call, named "RoomService/ListRooms", and beneath it a span
// for each attempt, with its host and status. The region list is read for all calls, not for one, so such a read is a trace of
// its own: "HTTP GET".
func tracing(provider trace.TracerProvider) []lkrpc.Option {
	return []lkrpc.Option{
		lkrpc.WithInterceptors(callSpans(provider.Tracer(scope))),
		lkrpc.WithTransportWrapper(func(next http.RoundTripper) http.RoundTripper {
			return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(provider))
		}),
	}
}

// callSpans gives each call a span, which ends with the call's error if there is one.
func callSpans(tracer trace.Tracer) twirp.Interceptor {
	return func(next twirp.Method) twirp.Method {
		return func(ctx context.Context, request any) (any, error) {
			service, _ := twirp.ServiceName(ctx)
			method, _ := twirp.MethodName(ctx)
			ctx, span := tracer.Start(ctx, service+"/"+method, trace.WithSpanKind(trace.SpanKindClient))
			defer span.End()
			response, err := next(ctx, request)
			if err != nil {
				span.RecordError(err)
				span.SetStatus(codes.Error, err.Error())
			}
			return response, err
		}
	}
}
