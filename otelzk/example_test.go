package otelzk_test

import (
	"context"
	"fmt"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A lock in the trace of what it is taken for. An application would have an exporter in the
// place of the recorder, and servers of its own.
func Example() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))

	ctx := context.Background()
	m, err := session.Connect(ctx, srv.ConnectString(),
		session.WithTrace(otelzk.New(otelzk.WithTracerProvider(provider), otelzk.WithRequestSpans(false))))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}

	ctx, span := provider.Tracer("billing").Start(ctx, "charge invoice")
	err = lock.Do(ctx, func(context.Context) error {
		fmt.Println("alone with invoice 42")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	span.End()

	for _, s := range recorder.Ended() {
		fmt.Println(s.Name(), "in the trace of", span.SpanContext().TraceID() == s.SpanContext().TraceID())
	}
	// Output:
	// alone with invoice 42
	// zklock lock in the trace of true
	// zklock hold in the trace of true
	// zklock unlock in the trace of true
	// charge invoice in the trace of true
}
