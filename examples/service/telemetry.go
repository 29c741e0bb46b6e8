package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
)

type telemetry struct {
	page    http.Handler
	meters  *metric.MeterProvider
	tracers *trace.TracerProvider
}

func newTelemetry(ctx context.Context) (*telemetry, error) {
	// Requests bring a traceparent, and nodes carry it on to the replicas that wait behind them.
	otel.SetTextMapPropagator(propagation.TraceContext{})
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	var spans []trace.TracerProviderOption
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" {
		collector, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, err
		}
		spans = append(spans, trace.WithBatcher(collector))
	}
	return &telemetry{
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		metric.NewMeterProvider(metric.WithReader(reader)),
		trace.NewTracerProvider(spans...),
	}, nil
}

// shutdown sends the last spans. Its deadline is for a collector that does not answer.
func (t *telemetry) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(t.tracers.Shutdown(ctx), t.meters.Shutdown(ctx))
}
