package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// One contender holds, a try is busy, a wait that ends says who holds, and a waiter gets the lock with a token.
func TestContend(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, b := testserver.Connect(t, testserver.Server(t).ConnectString()), testserver.Connect(t, testserver.Server(t).ConnectString())
	path := testserver.Path(t)
	qa, err := New(a, path)
	if err != nil {
		t.Fatal(err)
	}
	qb, _ := New(b, path)
	r := Request{Kind: Mutex()}
	first, err := qa.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := qb.TryAcquire(ctx, r); err == nil {
		t.Fatal("two holders")
	} else if !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if _, err := qb.Acquire(short, r); err == nil {
		t.Fatal("two holders")
	} else if wait := new(WaitError); !errors.As(err, &wait) || !wait.Ahead.Holder || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	got := make(chan *Lease)
	go func() {
		l, err := qb.Acquire(ctx, r)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	for {
		all, err := qa.Contenders(ctx, r.Kind)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 2 {
			break
		}
	}
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	l := <-got
	if tok, err := l.Token(ctx); err != nil || tok == 0 {
		t.Error(tok, err)
	}
	if err := l.Release(ctx); err != nil {
		t.Error(err)
	}
}

// A lease is lost from the moment at which its turn is over, also if the goroutine that has found the loss has not ended the
// lease yet.
func TestLeaseOfLostTurn(t *testing.T) {
	q, err := New(testserver.Connect(t, testserver.Server(t).ConnectString()), testserver.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := q.Acquire(t.Context(), Request{Kind: Mutex()})
	if err != nil {
		t.Fatal(err)
	}
	l.t.over.end(failed("lock", q.dir, session.ErrLost))
	if err := l.Err(); !errors.Is(err, session.ErrLost) {
		t.Errorf("the lease says %v", err)
	}
	select {
	case <-l.Done():
	default:
		t.Error("the lease has not ended")
	}
	if err := l.Release(t.Context()); !errors.Is(err, session.ErrLost) {
		t.Errorf("the release says %v", err)
	}
}
