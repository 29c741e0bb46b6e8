package otelzk

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// acquisition is a value in the context of an acquisition, which is also the context of its hold.
type acquisition struct {
	span   trace.Span
	caller trace.Span // in which Lock was called

	mu     sync.Mutex
	op     string            // of the last request
	row    int               // number of requests of that operation in a row
	behind trace.SpanContext // of the last holder that the span is linked to
}

// waitedFor links the span of an acquisition to that of a holder, once as long as it is the same.
func (a *acquisition) waitedFor(holder trace.SpanContext) {
	a.mu.Lock()
	linked := a.behind.Equal(holder)
	a.behind = holder
	a.mu.Unlock()
	if !linked {
		a.span.AddLink(trace.Link{SpanContext: holder})
	}
}

// maxRow is the number of requests of one operation in a row that have a span. A contender for a
// semaphore can watch hundreds of nodes, and asks for each of them again from time to time.
const maxRow = 8

// admit counts a request of an acquisition, and reports whether it gets a span. The acquisition is nil
// for a request outside of one.
func (a *acquisition) admit(op string) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.op != op {
		a.op, a.row = op, 0
	}
	a.row++
	return a.row <= maxRow
}

type acquisitionKey struct{}

// acquisitionOf returns the acquisition of a context, nil if there is none.
func acquisitionOf(ctx context.Context) *acquisition {
	a, _ := ctx.Value(acquisitionKey{}).(*acquisition)
	return a
}

// start begins a span of a lock, linked to another if there is one.
func (o *observer) start(ctx context.Context, name string, link trace.SpanContext, own ...attribute.KeyValue) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(append(own, o.attributes...)...)}
	if link.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: link}))
	}
	return o.tracer.Start(ctx, name, opts...)
}

// finish ends a span.
func finish(span trace.Span, end ending) {
	if span.IsRecording() {
		span.SetAttributes(end.attributes()...)
		if end.errorType != "" {
			span.SetStatus(codes.Error, end.err.Error())
		}
	}
	span.End()
}

// current returns what the locks of a kind and name hold and wait for. Their counters begin with it.
func (o *observer) current(of series) *current {
	now, isNew := o.live.of(o.instruments.set(of.with()...))
	if isNew {
		o.instruments.begin(of)
	}
	return now
}

// acquire is the hook for Lock and TryLock.
func (o *observer) acquire(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
	began, of := time.Now(), series{a.Kind, a.Name}
	name, leave, now := "zklock trylock", func() {}, o.current(of)
	if !a.Try {
		name, leave = "zklock lock", now.enter(a.Path, false)
	}
	caller := trace.SpanFromContext(ctx)
	ctx, span := o.start(ctx, name, trace.SpanContext{}, of.onSpan(a.Label, a.Chroot, a.Path)...)
	ctx = context.WithValue(ctx, acquisitionKey{}, &acquisition{span: span, caller: caller})
	return ctx, func(r session.AcquireResult) {
		leave() // before the span's processors, which may do anything
		end := unlessSettled(ctx, acquireEnding(r))
		span.SetAttributes(attrAttempts.Int(r.Attempts))
		if r.Position >= 0 {
			span.SetAttributes(attrPosition.Int(r.Position))
		}
		finish(span, end)
		in := o.instruments
		in.count(ctx, in.acquisitions, 1, of.with(end.attributes()...)...)
		if end.outcome == outcomeAcquired {
			in.record(ctx, in.acquire, began, of.with()...)
		}
	}
}

// startOf begins a span of a hold, linked to the span of its Lock. The span is a child of the span in
// ctx, if there is one, and otherwise of the span in which Lock was called.
func (o *observer) startOf(ctx, holder context.Context, h session.HoldInfo, name string) (context.Context, trace.Span) {
	var lock trace.SpanContext
	if a := acquisitionOf(holder); a != nil {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			ctx = trace.ContextWithSpan(ctx, a.caller)
		}
		lock = a.span.SpanContext()
	}
	own := series{h.Kind, h.Name}.onSpan(h.Label, h.Chroot, h.Path)
	return o.start(ctx, name, lock, append(own, attrNode.String(h.Node))...)
}

// patience is how long an Unlock waits for the servers. A release that takes longer is late.
const patience = time.Second

// release is the hook for Unlock.
func (o *observer) release(ctx, holder context.Context, h session.HoldInfo) (context.Context, func(error)) {
	began := time.Now()
	ctx, span := o.startOf(ctx, holder, h, "zklock unlock")
	return ctx, func(err error) {
		end := releaseEnding(err)
		finish(span, end)
		switch {
		case end.outcome == outcomePending, end.outcome == outcomeReleased && time.Since(began) > patience:
			end.outcome = outcomeLate
		case end.outcome != outcomeReleased && end.outcome != outcomeLost:
			end.outcome = outcomeFailed
		}
		o.instruments.count(ctx, o.instruments.releases, 1, series{h.Kind, h.Name}.with(attrOutcome.String(end.outcome))...)
	}
}

// watch is the hook for the wait while one node ahead stands.
func (o *observer) watch(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
	ctx, span := o.start(ctx, "zklock watch", trace.SpanContext{},
		semconv.DBNamespace(w.Chroot), attrWatchedPath.String(w.Path), attrWatched.Int(w.Nodes))
	return ctx, func(err error) {
		if span.IsRecording() {
			o.name(acquisitionOf(ctx), span, w)
		}
		finish(span, unlessSettled(ctx, partEnding(err)))
	}
}

// name says on the span of a wait which contender was ahead, if the wait has come to know that. The acquisition, which
// is nil if it is not known, is linked to the contender if that is a holder.
func (o *observer) name(of *acquisition, span trace.Span, w session.WatchInfo) {
	ahead, _ := w.Known()
	if ahead.ID != "" {
		span.SetAttributes(attrWatchedID.String(ahead.ID))
	}
	if ahead.Label != "" {
		span.SetAttributes(attrWatchedFor.String(ahead.Label))
	}
	link := o.spanContext(ahead.Traceparent)
	if !link.IsValid() {
		return
	}
	span.AddLink(trace.Link{SpanContext: link})
	if of != nil && w.Holds() {
		of.waitedFor(link)
	}
}

// hold is the hook for the time from the grant to the release or the loss.
func (o *observer) hold(holder context.Context, h session.HoldInfo) func(error) {
	began, of := time.Now(), series{h.Kind, h.Name}
	leave := o.current(of).enter(h.Path, true)
	ctx, span := o.startOf(trace.ContextWithSpanContext(holder, trace.SpanContext{}), holder, h, "zklock hold")
	return func(cause error) {
		leave() // first: see acquire
		end := releaseEnding(cause)
		finish(span, end)
		if end.outcome == outcomeReleased {
			o.instruments.record(ctx, o.instruments.hold, began, of.with()...)
		}
	}
}
