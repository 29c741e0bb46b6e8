package otelzk

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// acquisition is what the context of an acquisition, which is also its holder's, carries.
type acquisition struct {
	span   trace.Span
	caller trace.Span // of whoever called
}

type acquisitionKey struct{}

// acquisitionOf returns nil for a context that is no acquisition's.
func acquisitionOf(ctx context.Context) *acquisition {
	a, _ := ctx.Value(acquisitionKey{}).(*acquisition)
	return a
}

// start begins a span with the attributes of all, and one's own.
func (o *observer) start(ctx context.Context, name string, kind trace.SpanKind, links []trace.Link, own ...attribute.KeyValue) (context.Context, trace.Span) {
	return o.tracer.Start(ctx, name,
		trace.WithSpanKind(kind),
		trace.WithAttributes(o.attributes...),
		trace.WithAttributes(own...),
		trace.WithLinks(links...))
}

// finish ends a span.
func finish(span trace.Span, end ending, own ...attribute.KeyValue) {
	if span.IsRecording() {
		span.SetAttributes(own...)
		span.SetAttributes(end.attributes()...)
		if end.errorType != "" {
			span.SetStatus(codes.Error, end.err.Error())
		}
	}
	span.End()
}

// acquire is the hook for Lock and TryLock.
func (o *observer) acquire(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
	began := time.Now()
	name, leave := spanTryLock, func() {}
	if !a.Try {
		name, leave = spanLock, o.instruments.enter(ctx, o.instruments.waiters, a.Kind)
	}
	caller := trace.SpanFromContext(ctx)
	ctx, span := o.start(ctx, name, trace.SpanKindInternal, nil,
		attribute.String(attrKind, a.Kind), attribute.String(attrPath, a.Path))
	ctx = context.WithValue(ctx, acquisitionKey{}, &acquisition{span, caller})
	forget := o.open.add(span)
	return ctx, func(r session.AcquireResult) {
		forget()
		end := acquireEnding(r)
		own := []attribute.KeyValue{attribute.Int(attrAttempts, r.Attempts)}
		if r.Position >= 0 {
			own = append(own, attribute.Int(attrPosition, r.Position))
		}
		finish(span, end, own...)
		leave()
		o.instruments.observe(ctx, o.instruments.acquire, began, a.Kind, end)
	}
}

// release is the hook for Unlock. Its span is the sibling of that of the Lock, unless the
// release has been given a context with a span of its own.
func (o *observer) release(ctx, holder context.Context, h session.HoldInfo) (context.Context, func(error)) {
	var links []trace.Link
	if a := acquisitionOf(holder); a != nil {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			ctx = trace.ContextWithSpan(ctx, a.caller)
		}
		links = linkTo(a.span.SpanContext())
	}
	ctx, span := o.start(ctx, spanUnlock, trace.SpanKindInternal, links,
		attribute.String(attrKind, h.Kind), attribute.String(attrPath, h.Path), attribute.String(attrNode, h.Node))
	forget := o.open.add(span)
	return ctx, func(err error) {
		forget()
		finish(span, releaseEnding(err))
	}
}

// watch is the hook for the wait for others.
func (o *observer) watch(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
	ahead := parseNode(w.Data)
	own := []attribute.KeyValue{attribute.String(attrWatchedPath, w.Path)}
	if ahead.ID != "" {
		own = append(own, attribute.String(attrWatchedID, ahead.ID))
	}
	ctx, span := o.start(ctx, spanWatch, trace.SpanKindInternal, linkTo(o.spanContext(ahead)), own...)
	return ctx, func(err error) { finish(span, partEnding(err)) }
}

// hold is the hook for the time between the two.
func (o *observer) hold(ctx context.Context, h session.HoldInfo) func(error) {
	began := time.Now()
	leave := o.instruments.enter(ctx, o.instruments.held, h.Kind)
	return func(cause error) {
		leave()
		o.instruments.observe(ctx, o.instruments.hold, began, h.Kind, releaseEnding(cause))
	}
}
