package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// A nil context, and an object that was not made by its constructor, panic with a message, before
// anything is sent or changed.
func TestMisuse(t *testing.T) {
	srv := zktest.Start(t)
	q, err := queue.New(testserver.Connect(t, srv.Addr()), dir)
	expect.NoError(t, err)
	acquire := func() *queue.Lease {
		l, err := q.Acquire(expect.Patient(t), ask)
		expect.NoError(t, err)
		return l
	}
	releasing := acquire().StartRelease(expect.Patient(t), true)
	l := acquire()
	_, err = l.Token(expect.Patient(t)) // the last request before the misuse
	expect.NoError(t, err)
	srv.ResetRequests()
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
	if n := srv.Count(func(r zktest.Request) bool { return strings.HasPrefix(r.Path, q.Path()) }); n > 0 || l.Err() != nil {
		t.Errorf("%d requests, and the lease says %v", n, l.Err())
	}
}
