package otelzk

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// loss is the hook for a hold that is lost. The span of Lock has ended by then. So the event goes to the
// span in which Lock was called, which usually lasts as long as the hold.
func (o *observer) loss(ctx context.Context, h session.HoldInfo, cause error) {
	if errors.Is(cause, session.ErrClosed) {
		return // the program itself has released it, with Close
	}
	reason, of := errorType(cause), series{h.Kind, h.Name}
	o.instruments.lose(ctx, of, reason)
	if a := acquisitionOf(ctx); a != nil {
		addEvent(a.caller, eventLoss, time.Now(), of.with(attribute.String(attrPath, h.Path),
			attribute.String(attrNode, h.Node), attribute.String(attrErrorType, reason))...)
	}
}

// retry is the hook for requests and acquisitions that are tried again. The event goes to the span of
// which they are part.
func (o *observer) retry(ctx context.Context, r session.RetryInfo) {
	addEvent(trace.SpanFromContext(ctx), eventRetry, time.Now(),
		attribute.String(attrRetryOp, r.Op), attribute.Int(attrRetryTry, r.Try),
		attribute.String(attrErrorType, errorType(r.Cause)))
}

// state is the hook for changes of the session's state. They are events of all calls that were under way
// at the time of the change. The hook runs later, in a goroutine of its own.
func (o *observer) state(c session.Change) {
	state := c.To.String()
	o.instruments.transition(state)
	o.live.enter(c.To)
	if c.To == session.Closed {
		o.stop() // nothing follows
	}
	kv := []attribute.KeyValue{attribute.String(attrState, state)}
	if c.Err != nil {
		kv = append(kv, attribute.String(attrErrorType, errorType(c.Err)))
	}
	o.open.each(c.At, func(span trace.Span) { addEvent(span, eventState, c.At, kv...) })
}

func addEvent(span trace.Span, name string, at time.Time, kv ...attribute.KeyValue) {
	if span.IsRecording() {
		span.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(kv...))
	}
}

// openSpans are the spans of the calls under way.
type openSpans struct {
	mu  sync.Mutex
	all map[*openSpan]struct{}
}

type openSpan struct {
	trace.Span
	began time.Time
}

// add keeps a span until the returned function is called.
func (s *openSpans) add(span trace.Span, began time.Time) (forget func()) {
	if !span.IsRecording() {
		return func() {}
	}
	key := &openSpan{span, began}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*openSpan]struct{})
	}
	s.all[key] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, key)
	}
}

// each calls f with the spans that had begun before at.
func (s *openSpans) each(at time.Time, f func(trace.Span)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for open := range s.all {
		if open.began.Before(at) {
			f(open.Span)
		}
	}
}
