// Tracing shows lkrpc under OpenTelemetry: a span for each call, and beneath it one for each attempt, made by otelhttp.
//
//	go run .
//
// It dispatches an agent while the home region of a LiveKit Cloud in this process answers 503, and prints the spans.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	spans := tracetest.NewInMemoryExporter() // a service exports by OTLP instead
	if err := dispatch(ctx, trace.NewTracerProvider(trace.WithSyncer(spans))); err != nil {
		log.Fatal(err)
	}
	printCalls(os.Stdout, spans.GetSpans())
}

// dispatch makes one call that fails in the home region and succeeds in the next.
func dispatch(ctx context.Context, provider *trace.TracerProvider) error {
	cloud, err := cloudtest.Start()
	if err != nil {
		return err
	}
	defer cloud.Close()
	cloud.Region(0).Break(cloudtest.Status(503, nil, "maintenance"), cloudtest.On(cloudtest.API))

	options := append(tracing(provider), lkrpc.WithHTTPTransport(cloud.Transport())) // a service needs no transport of its own
	client, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, cloud.Secret), options...)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"})
	return err
}

// printCalls prints each call with its attempts beneath it, in the order in which they ended.
func printCalls(w io.Writer, spans tracetest.SpanStubs) {
	for _, call := range spans {
		if call.Parent.IsValid() || call.InstrumentationScope.Name != scope {
			continue
		}
		fmt.Fprintln(w, call.Name)
		for _, s := range spans {
			if s.Parent.SpanID() == call.SpanContext.SpanID() {
				fmt.Fprintf(w, "  %s %s: %s\n", s.Name, attr(s, "server.address"), attr(s, "http.response.status_code"))
			}
		}
	}
}

func attr(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return "-"
}
