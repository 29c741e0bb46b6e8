package otelzk

import (
	"testing"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A nil pointer to a provider is ignored. Otherwise New or the first lock would panic.
func TestNilPointers(t *testing.T) {
	c := newConfig([]Option{
		WithTracerProvider((*sdktrace.TracerProvider)(nil)),
		WithMeterProvider((*sdkmetric.MeterProvider)(nil)),
	})
	if c.tracers != otel.GetTracerProvider() || c.meters != otel.GetMeterProvider() {
		t.Errorf("providers %T and %T", c.tracers, c.meters)
	}
}
