package otelzk

import (
	"runtime/debug"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// New returns hooks for [session.WithTrace] that record all locks of a manager. Give each manager hooks
// of its own, since they keep the state of its session.
//
// OpenTelemetry's global propagator writes the traceparent of an acquisition into its node's data, and reads
// those of other contenders. Without one there are no links between processes: call
// otel.SetTextMapPropagator(propagation.TraceContext{}) in the main function, before New. Only the key
// traceparent of the propagator is used, since a node's data has no other. Clients that can read the lock's
// directory can read it. If they must not, set the field Traceparent of the hooks to nil.
//
// If a meter provider refuses an instrument, New reports that to OpenTelemetry's error handler and does
// without the instrument.
func New(opts ...Option) session.Trace {
	cfg := newConfig(opts)
	meter := cfg.meters.Meter(ScopeName, metric.WithInstrumentationVersion(version()), metric.WithSchemaURL(semconv.SchemaURL))
	o := &observer{
		tracer:      cfg.tracers.Tracer(ScopeName, trace.WithInstrumentationVersion(version()), trace.WithSchemaURL(semconv.SchemaURL)),
		config:      cfg,
		instruments: newInstruments(meter, cfg.attributes),
		propagator:  otel.GetTextMapPropagator(),
		live:        liveOf(meter),
	}
	o.instruments.inState(session.Connecting, 1)
	t := session.Trace{
		Traceparent: o.traceparent,
		Watch:       o.watch,
		Acquire:     o.acquire,
		Release:     o.release,
		Hold:        o.hold,
		Loss:        o.loss,
		Retry:       o.retry,
		State:       o.state,
		Job:         o.job,
	}
	if cfg.requestSpans || cfg.requestMetrics {
		t.Request = o.request
	}
	return t
}

// observer is shared by the hooks.
type observer struct {
	config
	tracer      trace.Tracer
	instruments *instruments
	propagator  propagation.TextMapPropagator
	live        *live
}

// version returns the version of this module from the build info of the program.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/turnstile-go/turnstile" && m.Version != "" {
				return strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return "(devel)"
})

// series names the locks that have one series of each metric: those of one kind and one name, which is "" for
// locks without a name (zklock.WithName).
type series struct{ kind, name string }

// with returns the attributes of the metrics of these locks and further ones.
func (s series) with(own ...attribute.KeyValue) []attribute.KeyValue {
	kv := append(make([]attribute.KeyValue, 0, 8), attrKind.String(s.kind))
	if s.name != "" {
		kv = append(kv, attrName.String(s.name))
	}
	return append(kv, own...)
}

// onSpan returns the attributes of the spans of one lock.
func (s series) onSpan(label, chroot, path string) []attribute.KeyValue {
	kv := s.with(semconv.DBNamespace(chroot), attrPath.String(path))
	if label != "" {
		kv = append(kv, attrLabel.String(label))
	}
	return kv
}
