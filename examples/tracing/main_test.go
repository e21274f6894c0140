package main

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestEachAttemptIsASpanOfItsCall(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	if err := dispatch(t.Context(), trace.NewTracerProvider(trace.WithSyncer(spans))); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printCalls(&out, spans.GetSpans())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || lines[0] != "AgentDispatchService/CreateDispatch" || lines[1] != "  HTTP POST demo.livekit.cloud: 503" ||
		!strings.HasSuffix(lines[2], ".production.livekit.cloud: 200") {
		t.Errorf("want the call, its attempt at home and one in another region; got\n%s", &out)
	}
}

func TestAFailedCallIsAFailedSpan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	spans := tracetest.NewInMemoryExporter()
	if err := dispatch(ctx, trace.NewTracerProvider(trace.WithSyncer(spans))); err == nil {
		t.Fatal("a cancelled call succeeded")
	}
	calls := spans.GetSpans()
	if len(calls) != 1 {
		t.Fatalf("%d spans, want that of the call", len(calls))
	}
	if s := calls[0].Status; s.Code.String() != "Error" || !strings.Contains(s.Description, "canceled") {
		t.Errorf("the span's status is %+v", s)
	}
}
