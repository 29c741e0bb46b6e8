package otelzk

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/turnstile-go/turnstile/session"
)

// New returns hooks for [session.WithTrace] that record all locks of a manager. Give each manager hooks
// of its own, since changes of a session's state become events on all acquisitions that the same hooks
// see, and the metrics of the oldest hold and of the session's state end when the manager is closed.
//
// OpenTelemetry's global propagator writes the traceparent of an acquisition into its node's data, and reads
// those of other contenders. Without one there are no links between processes: call
// otel.SetTextMapPropagator(propagation.TraceContext{}) in the main function, before New. Only the key
// traceparent of the propagator is used, since a node's data has no other.
//
// If a meter provider refuses an instrument, New reports that to OpenTelemetry's error handler and does
// without the instrument.
func New(opts ...Option) session.Trace {
	cfg := newConfig(opts)
	meter := newMeter(cfg.meters)
	o := &observer{
		tracer: cfg.tracers.Tracer(ScopeName,
			trace.WithInstrumentationVersion(version()),
			trace.WithSchemaURL(semconv.SchemaURL)),
		instruments:  newInstruments(meter, cfg.attributes),
		propagator:   otel.GetTextMapPropagator(),
		attributes:   cfg.attributes,
		requestSpans: cfg.requestSpans && !silent(cfg.tracers),
		live:         newLive(cfg.attributes),
	}
	o.instruments.begin()
	o.stop = report(meter, o.live)
	runtime.AddCleanup(o, func(stop func()) { go stop() }, o.stop) // hooks that no manager has closed
	t := session.Trace{
		Request: o.request,
		Watch:   o.watch,
		Acquire: o.acquire,
		Release: o.release,
		Hold:    o.hold,
		Loss:    o.loss,

		Retry: o.retry,
		State: o.state,
		Job:   o.job,
	}
	if cfg.inNode {
		t.Traceparent = o.traceparent
	}
	return t
}

// observer is shared by the hooks. Only its last three fields change, and they guard themselves.
type observer struct {
	tracer       trace.Tracer
	instruments  *instruments
	propagator   propagation.TextMapPropagator
	attributes   []attribute.KeyValue // on all spans
	requestSpans bool
	stop         func() // takes live out of the gauges
	live         *live
	open         openSpans
	sorts        sorts
}

// silent reports whether a provider is the API's own, which does nothing. Spans of requests would have
// no effect then, as they have no children.
func silent(p trace.TracerProvider) bool {
	_, ok := p.(noop.TracerProvider)
	return ok
}

const module = "github.com/turnstile-go/turnstile"

// version returns the version of this module from the build info of the program.
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
