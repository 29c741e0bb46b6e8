package otelzk

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// loss is the hook for a hold that is lost. By then the Lock's own span has ended, so the
// event is for its caller's, which tends to surround what the lock is held for.
func (o *observer) loss(ctx context.Context, h session.HoldInfo, cause error) {
	if errors.Is(cause, session.ErrClosed) {
		return // the program has given it up, by Close
	}
	reason := errorType(cause)
	o.instruments.lose(ctx, h.Kind, reason)
	if a := acquisitionOf(ctx); a != nil {
		addEvent(a.caller, eventLoss,
			attribute.String(attrKind, h.Kind), attribute.String(attrPath, h.Path),
			attribute.String(attrNode, h.Node), attribute.String(attrErrorType, reason))
	}
}

// retry is the hook for what is tried again. The event is for the span that it is part of.
func (o *observer) retry(ctx context.Context, r session.RetryInfo) {
	addEvent(trace.SpanFromContext(ctx), eventRetry,
		attribute.String(attrRetryOp, r.Op), attribute.Int(attrRetryTry, r.Try),
		attribute.String(attrErrorType, errorType(r.Cause)))
}

// state is the hook for the session's changes. They are events of every call under way.
func (o *observer) state(c session.Change) {
	state := strings.ToLower(c.To.String())
	o.instruments.transition(state)
	kv := []attribute.KeyValue{attribute.String(attrState, state)}
	if c.Err != nil {
		kv = append(kv, attribute.String(attrErrorType, errorType(c.Err)))
	}
	o.open.each(func(span trace.Span) { addEvent(span, eventState, kv...) })
}

func addEvent(span trace.Span, name string, kv ...attribute.KeyValue) {
	if span.IsRecording() {
		span.AddEvent(name, trace.WithAttributes(kv...))
	}
}

// openSpans are those of the calls under way.
type openSpans struct {
	mu  sync.Mutex
	all map[*trace.Span]struct{} // a pointer, since a span of another SDK may not be comparable
}

// add notes a span until the returned function is called.
func (s *openSpans) add(span trace.Span) (forget func()) {
	if !span.IsRecording() {
		return func() {}
	}
	key := &span
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*trace.Span]struct{})
	}
	s.all[key] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, key)
	}
}

func (s *openSpans) each(f func(trace.Span)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for span := range s.all {
		f(*span)
	}
}
