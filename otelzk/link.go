package otelzk

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/trace"
)

// Bounds on the data of other clients' nodes.
const (
	maxNodeData = 4096
	maxID       = 256
	traceKey    = "traceparent"
)

// node is the data of a contender's node.
type node struct {
	ID          string `json:"id"`
	Traceparent string `json:"traceparent"`
}

// parseNode parses the data of a node, which any client may have written. It returns the zero node for
// data of another form.
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

// traceparent is the hook for the traceparent in the data of this process's own nodes.
func (o *observer) traceparent(ctx context.Context) string {
	var c carrier
	if trace.SpanContextFromContext(ctx).IsValid() {
		o.propagator.Inject(ctx, &c)
	}
	return string(c)
}

// spanContext returns the span context of a node's acquisition. It is invalid if the node has none.
func (o *observer) spanContext(n node) trace.SpanContext {
	if n.Traceparent == "" {
		return trace.SpanContext{}
	}
	c := carrier(n.Traceparent)
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
