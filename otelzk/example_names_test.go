package otelzk_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// There is a lock for each invoice, and the metrics count them as one sort of lock. The label is on the spans of one
// acquisition.
func Example_names() {
	server, err := zktest.New() // your ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	reader := metric.NewManualReader() // your exporter
	hooks := otelzk.New(otelzk.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	ctx := context.Background()
	m, err := session.Connect(ctx, server.ConnectString(), session.WithTrace(hooks))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for _, invoice := range []string{"41", "42"} {
		lock, err := zklock.New(m, "/locks/invoice-"+invoice, zklock.WithName("invoice"))
		if err != nil {
			log.Fatal(err)
		}
		if err := lock.Lock(queue.WithLabel(ctx, "request 8151")); err != nil {
			log.Fatal(err)
		}
		defer lock.Unlock() //nolint:errcheck // the program ends
	}
	printHeld(ctx, reader)
	// Output: mutex "invoice": 2 held
}

func printHeld(ctx context.Context, reader metric.Reader) {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != "zklock.held.count" {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				kind, _ := p.Attributes.Value("zklock.kind")
				name, _ := p.Attributes.Value("zklock.name")
				fmt.Printf("%s %q: %d held\n", kind.AsString(), name.AsString(), p.Value)
			}
		}
	}
}
