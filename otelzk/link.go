package otelzk

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/trace"
)

// Bounds on the data of nodes that others have made.
const (
	maxNodeData = 4096
	maxID       = 256
	traceKey    = "traceparent"
)

// node is what a contender's data says of it.
type node struct {
	ID          string `json:"id"`
	Traceparent string `json:"traceparent"`
}

// parseNode reads the data of a node, which anybody may have made: what is not ours says
// nothing.
func parseNode(data []byte) node {
	if len(data) == 0 || len(data) > maxNodeData || data[0] != '{' {
		return node{}
	}
	var n node
	if json.Unmarshal(data, &n) != nil || len(n.ID) > maxID {
		return node{}
	}
	return n
}

// traceparent is the hook for what our own node's data is to say.
func (o *observer) traceparent(ctx context.Context) string {
	var c carrier
	if trace.SpanContextFromContext(ctx).IsValid() {
		o.propagator.Inject(ctx, &c)
	}
	return string(c)
}

// spanContext returns that of the acquisition of a node, which is invalid if it says none.
func (o *observer) spanContext(n node) trace.SpanContext {
	if n.Traceparent == "" {
		return trace.SpanContext{}
	}
	c := carrier(n.Traceparent)
	return trace.SpanContextFromContext(o.propagator.Extract(context.Background(), &c))
}

// carrier is a [propagation.TextMapCarrier] for a traceparent alone.
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
