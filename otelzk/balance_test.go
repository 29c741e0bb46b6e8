package otelzk_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
)

func TestWithoutRequestSpans(t *testing.T) {
	c := newClient(t, directory(t), otelzk.WithRequestSpans(false))
	must(t, c.mx.Lock(patient(t)))
	c.unlock(t)
	sameTree(t, c.tree(t, nil), `
zklock lock mutex acquired position=0 attempts=1
zklock hold mutex released lock-0000000000 links=1
zklock unlock mutex released lock-0000000000 links=1
`)
	if _, metrics := c.collect(t); metrics["db.client.operation.duration"] == nil {
		t.Error("no metric of requests")
	}
}

func TestWithoutRequestMetrics(t *testing.T) {
	c := newClient(t, directory(t), otelzk.WithRequestMetrics(false))
	must(t, c.mx.Lock(patient(t)))
	c.unlock(t)
	c.started(t, "delete /", 0)
	if _, metrics := c.collect(t); metrics["db.client.operation.duration"] != nil || metrics["zklock.acquisitions"] == nil {
		t.Errorf("metrics %v", metrics)
	}
	if hooks := otelzk.New(otelzk.WithRequestMetrics(false), otelzk.WithRequestSpans(false)); hooks.Request != nil {
		t.Error("a hook for requests that does nothing")
	}
}

// All spans end, here those of hundreds of waits that are cancelled, many at a time.
func TestNoSpanLeftOpen(t *testing.T) {
	const goroutines = 20
	each := longtest.Pick(15, 50)
	dir := directory(t)
	holder := newClient(t, dir)
	must(t, holder.mx.Lock(patient(t)))
	// Half of them are cancelled while they wait, the others at any moment before.
	type waiting struct{}
	tel := newTelemetry()
	hooks := otelzk.New(tel.opts...)
	watch := hooks.Watch
	hooks.Watch = func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
		if cancel, ok := ctx.Value(waiting{}).(context.CancelFunc); ok {
			defer cancel()
		}
		return watch(ctx, w)
	}
	c := connect(t, dir, tel, hooks)
	var callers errgroup.Group
	for i := range goroutines {
		callers.Go(func() error {
			for range each {
				ctx, cancel := context.WithCancel(context.Background())
				if i%2 == 0 {
					ctx = context.WithValue(ctx, waiting{}, cancel)
				} else {
					go cancel()
				}
				if err := c.mx.Lock(ctx); !errors.Is(err, context.Canceled) {
					return err
				}
			}
			return nil
		})
	}
	must(t, callers.Wait())
	testserver.WaitChildren(t, dir, 1)
	holder.unlock(t)
	all := c.settled(t)
	locks := slices.DeleteFunc(slices.Clone(all), func(s sdktrace.ReadWriteSpan) bool { return s.Name() != "zklock lock" })
	for _, s := range locks {
		if attr(s, "zklock.outcome") != "canceled" || s.Status().Code != codes.Unset {
			t.Errorf("%v, status %v", s.Attributes(), s.Status())
		}
	}
	byID := make(map[trace.SpanID]string)
	for _, s := range all {
		byID[s.SpanContext().SpanID()] = s.Name()
	}
	for _, s := range all {
		if s.SpanKind() == trace.SpanKindClient && byID[s.Parent().SpanID()] == "" {
			t.Errorf("%s %s has no parent", s.Name(), attr(s, "zklock.request.path"))
		}
	}
	t.Logf("%d locks got as far as a span, %d spans", len(locks), len(all))
}
