package otelzk

import (
	"runtime/debug"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/turnstile-go/turnstile/session"
)

// New returns hooks for [session.WithTrace] that tell OpenTelemetry of every lock of a
// manager. Each manager should have its own: changes of a session's state become events on
// all acquisitions that are under way.
//
// An instrument that a meter provider refuses is reported to OpenTelemetry's error handler
// and left out.
func New(opts ...Option) session.Trace {
	cfg := newConfig(opts)
	o := &observer{
		tracer: cfg.tracers.Tracer(ScopeName,
			trace.WithInstrumentationVersion(version()),
			trace.WithSchemaURL(semconv.SchemaURL)),
		instruments:  newInstruments(cfg.meters, cfg.attributes),
		propagator:   cfg.propagator,
		attributes:   cfg.attributes,
		requestSpans: cfg.requestSpans && !silent(cfg.tracers),
	}
	t := session.Trace{
		Request: o.request,
		Watch:   o.watch,
		Acquire: o.acquire,
		Release: o.release,
		Hold:    o.hold,
		Loss:    o.loss,
		Retry:   o.retry,
		State:   o.state,
	}
	if cfg.inNode {
		t.Traceparent = o.traceparent
	}
	return t
}

// observer is what the hooks have in common. It does not change, but for the last two.
type observer struct {
	tracer       trace.Tracer
	instruments  *instruments
	propagator   propagation.TextMapPropagator
	attributes   []attribute.KeyValue // on all spans
	requestSpans bool
	open         openSpans
	sorts        sorts
}

// silent reports whether a provider is the API's own that does nothing. Its spans show in
// nothing but the context they are in, and requests have none below them.
func silent(p trace.TracerProvider) bool {
	_, ok := p.(noop.TracerProvider)
	return ok
}

const module = "github.com/turnstile-go/turnstile"

// version returns that of this module in the program that runs, which nobody can forget to
// raise.
var version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return moduleVersion(info)
})

func moduleVersion(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil && m.Replace.Version != "" {
			m = m.Replace
		}
		if m.Version != "" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "(devel)"
}
