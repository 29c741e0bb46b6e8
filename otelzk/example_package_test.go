package otelzk_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The example of the package's documentation, on a server in this process. A program has an exporter in
// the place of the recorder.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	recorder := tracetest.NewSpanRecorder()
	otel.SetTextMapPropagator(propagation.TraceContext{}) // for the links between processes
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	if err := chargeInvoice(context.Background(), server.ConnectString()); err != nil {
		log.Fatal(err)
	}
	for _, span := range recorder.Ended() {
		if strings.HasPrefix(span.Name(), "zklock") { // and no request to ZooKeeper
			fmt.Println(span.Name())
		}
	}
	// Output:
	// alone with invoice 42
	// zklock lock
	// zklock hold
	// zklock unlock
}

func chargeInvoice(ctx context.Context, servers string) error {
	m, err := session.Connect(ctx, servers, session.WithTrace(otelzk.New()))
	if err != nil {
		return err
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		return err
	}
	ctx, span := otel.Tracer("billing").Start(ctx, "charge invoice")
	defer span.End()
	return lock.Do(ctx, func(ctx context.Context) error {
		return charge(ctx, 42) // the trace shows the wait, the hold and the release
	})
}

func charge(ctx context.Context, invoice int) error {
	fmt.Println("alone with invoice", invoice)
	return ctx.Err()
}
