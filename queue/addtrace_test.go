package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Hooks that are added to a running manager are told the label of an acquisition and of its hold, and the traceparent that
// earlier hooks have for it: that of the context which their Acquire hook has returned.
func TestAddedHooksKnowLabelAndTraceparent(t *testing.T) {
	type spanKey struct{}
	var acquired, own session.AcquireInfo
	var held, lost, released session.HoldInfo
	q, _, m := proxied(t, testserver.Path(t), session.WithTrace(session.Trace{
		Traceparent: func(ctx context.Context) string { span, _ := ctx.Value(spanKey{}).(string); return span },
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			own = a
			return context.WithValue(ctx, spanKey{}, "a span"), nil
		},
	}))
	losses := make(chan struct{}, 1)
	m.AddTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			acquired = a
			return ctx, nil
		},
		Hold: func(_ context.Context, h session.HoldInfo) func(error) { held = h; return nil },
		Release: func(ctx, _ context.Context, h session.HoldInfo) (context.Context, func(error)) {
			released = h
			return ctx, nil
		},
		Loss: func(_ context.Context, h session.HoldInfo, _ error) { lost = h; losses <- struct{}{} },
	})
	first, err := q.Acquire(queue.WithLabel(patient(t), "request 42"), ask)
	if err != nil {
		t.Fatal(err)
	}
	release(t, first)
	second, err := q.Acquire(queue.WithLabel(patient(t), "request 43"), ask)
	if err != nil {
		t.Fatal(err)
	}
	if acquired.Label != "request 43" || acquired.Traceparent != "a span" || own.Label != "request 43" || own.Traceparent != "" {
		t.Errorf("Acquire: added %+v, own %+v", acquired, own)
	}
	if held.Label != "request 43" || released.Label != "request 42" {
		t.Errorf("Hold: %+v; Release: %+v", held, released)
	}
	testserver.Delete(t, second.Path())
	if _, err := second.Token(patient(t)); !errors.Is(err, session.ErrLost) {
		zktest.Eventually(t, testserver.Patience, "the loss", func() bool { return second.Err() != nil })
	}
	<-losses
	if lost.Label != "request 43" {
		t.Errorf("Loss: %+v", lost)
	}
}
