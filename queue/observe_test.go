package queue_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// An observer is told of the first contender, of the next one when that leaves, and that nobody is left. Its last pair says
// why it ends.
func TestObserve(t *testing.T) {
	dir := testserver.Path(t)
	q, observer := client(t, dir), client(t, dir)
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	next, stop := iter.Pull2(observer.Observe(ctx, queue.Mutex()))
	defer stop()
	want := func(what, id string) {
		t.Helper()
		first, err, more := next()
		if err != nil || !more || first.ID != id || first.Holder != (id != "") || (first.Path == "") != (id == "") {
			t.Fatalf("%s: %+v, %v, %v; want %q", what, first, err, more, id)
		}
	}
	named := func(id string) queue.Request { return queue.Request{Kind: queue.Mutex(), Data: []byte(id)} }
	isFirst := func(id string) {
		t.Helper()
		first, err := observer.First(ctx, queue.Mutex())
		if err != nil || first.ID != id || (first.Path == "") != (id == "") {
			t.Errorf("First: %+v, %v; want %q", first, err, id)
		}
	}
	want("no directory", "")
	isFirst("")
	one, err := q.Acquire(patient(t), named("one"))
	if err != nil {
		t.Fatal(err)
	}
	want("a holder", "one")
	isFirst("one")
	two := make(chan *queue.Lease, 1)
	go func() {
		l, err := q.Acquire(context.WithoutCancel(ctx), named("two"))
		if err != nil {
			t.Error(err)
		}
		two <- l
	}()
	testserver.WaitChildren(t, dir, 2)
	release(t, one)
	want("the next", "two")
	release(t, <-two)
	want("nobody", "")
	isFirst("")
	cancel()
	if _, err, more := next(); !more || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of ctx: %v, %v", err, more)
	}
	if _, _, more := next(); more {
		t.Error("another pair after an error")
	}
}

// Observe says what is wrong with its kind, and with contenders of another kind.
func TestObserveRefuses(t *testing.T) {
	q := client(t, testserver.Path(t))
	for _, err := range q.Observe(patient(t), &queue.Kind{}) {
		if !errors.Is(err, session.ErrInvalid) {
			t.Errorf("a bad kind: %v", err)
		}
	}
	if _, err := q.First(patient(t), &queue.Kind{}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("First of a bad kind: %v", err)
	}
	lease, err := q.Acquire(patient(t), queue.Request{Kind: queue.Reader()})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range q.Observe(patient(t), queue.Mutex()) {
		if !errors.Is(err, queue.ErrConflict) {
			t.Errorf("a reader: %v", err)
		}
	}
	release(t, lease)
}
