package otelzk

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestParseNode(t *testing.T) {
	o := &observer{propagator: propagation.TraceContext{}}
	for _, c := range []struct {
		what, data, id string
		linked         bool
	}{
		{"ours", `{"id":"host/1","traceparent":"` + parent + `"}`, "host/1", true},
		{"without a trace", `{"id":"host/1"}`, "host/1", false},
		{"without an id", `{"traceparent":"` + parent + `"}`, "", true},
		{"with more than we know", `{"id":"host/1","x":[1,{}],"traceparent":"` + parent + `"}`, "host/1", true},
		{"of a later version", `{"id":"a","traceparent":"01` + parent[2:] + `-more"}`, "a", true},
		{"not sampled", `{"id":"a","traceparent":"` + parent[:54] + `0"}`, "a", true},
		{"nothing", "", "", false},
		{"Curator's", "192.168.0.1", "", false},
		{"a revocation", "__REVOKE__", "", false},
		{"another object", `{"name":"x"}`, "", false},
		{"other types", `{"id":1,"traceparent":2}`, "", false},
		{"cut off", `{"id":"host/1","tracepar`, "", false},
		{"two values", `{"id":"a"}{"id":"b"}`, "", false},
		{"a list", `[{"id":"host/1"}]`, "", false},
		{"a bad trace", `{"id":"a","traceparent":"00-zz-zz-01"}`, "a", false},
		{"an empty trace", `{"id":"a","traceparent":"00-00000000000000000000000000000000-0000000000000000-00"}`, "a", false},
		{"a forbidden version", `{"id":"a","traceparent":"ff` + parent[2:] + `"}`, "a", false},
		{"a long id", `{"id":"` + strings.Repeat("x", maxID+1) + `"}`, "", false},
		{"far too long", `{"id":"a","x":"` + strings.Repeat("x", maxNodeData) + `"}`, "", false},
	} {
		n := parseNode([]byte(c.data))
		if sc := o.spanContext(n); n.ID != c.id || sc.IsValid() != c.linked {
			t.Errorf("%s: id %q, trace %v", c.what, n.ID, sc)
		}
	}
}

// Whatever data other clients write, there is a usable id or none, and a link to the span in the data or none.
func FuzzNodeData(f *testing.F) {
	f.Add([]byte(`{"id":"host/1","traceparent":"` + parent + `"}`))
	f.Add([]byte(`{"id":"host/1"}`))
	f.Add([]byte("__REVOKE__"))
	f.Add([]byte("{\"id\":\"\xff\xfe\",\"traceparent\":\"00-\x00\"}"))
	o := &observer{propagator: propagation.TraceContext{}}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := parseNode(data)
		if len(n.ID) > maxID || !utf8.ValidString(n.ID) {
			t.Errorf("id %q", n.ID)
		}
		sc := o.spanContext(n)
		if !sc.IsValid() {
			return
		}
		// The link leads to the span in the data.
		if !strings.Contains(n.Traceparent, sc.TraceID().String()) || !strings.Contains(n.Traceparent, sc.SpanID().String()) {
			t.Errorf("%q is read as %v", n.Traceparent, sc)
		}
	})
}

func TestTraceparent(t *testing.T) {
	o := &observer{propagator: propagation.TraceContext{}}
	sc := o.spanContext(node{Traceparent: parent})
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
	if o.spanContext(node{Traceparent: parent}).IsValid() {
		t.Error("a propagator that has no traceparent reads one")
	}
}
