package otelzk

import (
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

type propagator struct{ propagation.TraceContext }

// A nil pointer to a provider is ignored. Otherwise New or the first lock would panic.
func TestNilPointers(t *testing.T) {
	c := newConfig([]Option{
		WithTracerProvider((*sdktrace.TracerProvider)(nil)),
		WithMeterProvider((*sdkmetric.MeterProvider)(nil)),
		WithPropagators((*propagator)(nil)),
	})
	if c.tracers != otel.GetTracerProvider() || c.meters != otel.GetMeterProvider() {
		t.Errorf("providers %T and %T", c.tracers, c.meters)
	}
	if _, ok := c.propagator.(propagation.TraceContext); !ok {
		t.Errorf("propagator %T", c.propagator)
	}
}
