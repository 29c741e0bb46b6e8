package otelzk

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is the hook for the traceparent in the data of this process's own nodes.
func (o *observer) traceparent(ctx context.Context) string {
	c := make(propagation.MapCarrier)
	if trace.SpanContextFromContext(ctx).IsValid() {
		o.propagator.Inject(ctx, c)
	}
	return c["traceparent"]
}

// spanContext returns the span context of a traceparent. It is invalid if that is.
func (o *observer) spanContext(traceparent string) trace.SpanContext {
	c := propagation.MapCarrier{"traceparent": traceparent}
	return trace.SpanContextFromContext(o.propagator.Extract(context.Background(), c))
}
