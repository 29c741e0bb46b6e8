package otelzk

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// loss is the hook for a hold that is lost. The span of Lock has ended by then. So the event goes to the
// span in which Lock was called, which usually lasts as long as the hold.
func (o *observer) loss(ctx context.Context, h session.HoldInfo, cause error) {
	if errors.Is(cause, session.ErrClosed) {
		return // the program itself has released it, with Close
	}
	reason, of := semconv.ErrorTypeKey.String(errorType(cause)), series{h.Kind, h.Name}
	o.instruments.count(ctx, o.instruments.losses, 1, of.with(reason)...)
	if a := acquisitionOf(ctx); a != nil {
		a.caller.AddEvent("zklock.loss", trace.WithAttributes(of.with(attrPath.String(h.Path), attrNode.String(h.Node), reason)...))
	}
}

// retry is the hook for requests and acquisitions that are tried again. The event goes to the span of
// which they are part.
func (o *observer) retry(ctx context.Context, r session.RetryInfo) {
	trace.SpanFromContext(ctx).AddEvent("zklock.retry", trace.WithAttributes(
		attribute.String("zklock.retry.operation", r.Op), attribute.Int("zklock.retry.count", r.Try), semconv.ErrorTypeKey.String(errorType(r.Cause))))
}

// state is the hook for changes of the session's state.
func (o *observer) state(c session.Change) {
	in := o.instruments
	in.count(context.Background(), in.transitions, 1, attrState.String(c.To.String()))
	in.inState(c.From, -1)
	if c.To != session.Closed {
		in.inState(c.To, 1)
	}
}
