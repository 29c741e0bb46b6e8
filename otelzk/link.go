package otelzk

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

const traceKey = "traceparent"

// traceparent is the hook for the traceparent in the data of this process's own nodes.
func (o *observer) traceparent(ctx context.Context) string {
	var c carrier
	if trace.SpanContextFromContext(ctx).IsValid() {
		o.propagator.Inject(ctx, &c)
	}
	return string(c)
}

// spanContext returns the span context of a traceparent. It is invalid if that is.
func (o *observer) spanContext(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	c := carrier(traceparent)
	return trace.SpanContextFromContext(o.propagator.Extract(context.Background(), &c))
}

// carrier is a [propagation.TextMapCarrier] with room for a traceparent only.
type carrier string

func (c *carrier) Get(key string) string {
	if key != traceKey {
		return ""
	}
	return string(*c)
}

func (c *carrier) Set(key, value string) {
	if key == traceKey {
		*c = carrier(value)
	}
}

func (c *carrier) Keys() []string { return []string{traceKey} }
