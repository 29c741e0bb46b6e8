package otelzk

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestSpanContext(t *testing.T) {
	o := &observer{propagator: propagation.TraceContext{}}
	for what, c := range map[string]struct {
		traceparent string
		linked      bool
	}{
		"ours":                {parent, true},
		"of a later version":  {"01" + parent[2:] + "-more", true},
		"not sampled":         {parent[:54] + "0", true},
		"nothing":             {"", false},
		"a bad one":           {"00-zz-zz-01", false},
		"an empty one":        {"00-00000000000000000000000000000000-0000000000000000-00", false},
		"a forbidden version": {"ff" + parent[2:], false},
	} {
		if sc := o.spanContext(c.traceparent); sc.IsValid() != c.linked {
			t.Errorf("%s: %v", what, sc)
		}
	}
}

// Whatever other clients write, there is a link to the span in the text, or none.
func FuzzSpanContext(f *testing.F) {
	f.Add(parent)
	f.Add("00-\x00")
	o := &observer{propagator: propagation.TraceContext{}}
	f.Fuzz(func(t *testing.T, text string) {
		sc := o.spanContext(text)
		if sc.IsValid() && (!strings.Contains(text, sc.TraceID().String()) || !strings.Contains(text, sc.SpanID().String())) {
			t.Errorf("%q is read as %v", text, sc)
		}
	})
}

func TestTraceparent(t *testing.T) {
	o := &observer{propagator: propagation.TraceContext{}}
	sc := o.spanContext(parent)
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), sc)
	if got := o.traceparent(ctx); got != parent {
		t.Errorf("%q, want %q", got, parent)
	}
	if got := o.traceparent(context.Background()); got != "" {
		t.Errorf("%q for no span", got)
	}
	o.propagator = propagation.Baggage{} // has no traceparent
	if got := o.traceparent(ctx); got != "" {
		t.Errorf("%q from a propagator that has none", got)
	}
	if o.spanContext(parent).IsValid() {
		t.Error("a propagator that has no traceparent reads one")
	}
}
