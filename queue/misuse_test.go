package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// A nil context, and an object that was not made by its constructor, panic with a message, before
// anything is sent or changed.
func TestMisuse(t *testing.T) {
	q, proxy, _ := proxied(t, testserver.Path(t))
	l := acquire(t, q)
	if _, err := l.Token(patient(t)); err != nil { // the last request before the misuse
		t.Fatal(err)
	}
	releasing := acquire(t, client(t, testserver.Path(t))).StartRelease(patient(t), true)
	proxy.ResetRequests()
	misusetest.Check(t, misusetest.Package{
		Name: "queue",
		Objects: []misusetest.Object{
			{Zero: &queue.Queue{}, Made: q},
			{Zero: &queue.Lease{}, Made: l},
			{Zero: &queue.Turn{}, Made: l.Turn()},
			{Zero: &queue.Releasing{}, Made: releasing},
		},
		Values: []any{&queue.Kind{}, queue.Request{}, &queue.Verdict{}, &queue.OpError{Err: queue.ErrBusy}, &queue.WaitError{Err: queue.ErrBusy}},
		Funcs: map[string]func(context.Context){
			"LeaseFrom":      func(ctx context.Context) { queue.LeaseFrom(ctx) },
			"WithLabel":      func(ctx context.Context) { queue.WithLabel(ctx, "request 42") },
			"WithMaxWait":    func(ctx context.Context) { queue.WithMaxWait(ctx, time.Second) },
			"WithoutMaxWait": func(ctx context.Context) { queue.WithoutMaxWait(ctx) },
			"MaxWait":        func(ctx context.Context) { queue.MaxWait(ctx) },
			"BeginWait":      func(ctx context.Context) { queue.BeginWait(ctx) },
			"OwnerOf":        func(ctx context.Context) { queue.OwnerOf(ctx) },
			"WithEnd": func(ctx context.Context) {
				queue.WithEnd(ctx, func() error { return nil }, func(func()) func() { return func() {} })
			},
			"WithOwner": func(ctx context.Context) { queue.WithOwner(ctx) },
		},
	})
	if n := proxy.Count(inDir(q.Path())); n > 0 || l.Err() != nil {
		t.Errorf("%d requests, and the lease says %v", n, l.Err())
	}
	release(t, l)
}
