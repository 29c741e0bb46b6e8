package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// doer is all that pay needs of a lock.
type doer interface {
	Do(ctx context.Context, f func(context.Context) error) error
}

// Every lock is a doer.
var _ = []doer{(*zklock.Mutex)(nil), (*zklock.MultiLock)(nil), (*rwlock.RWMutex)(nil), rwlock.Reader{}, (*semaphore.Semaphore)(nil)}

// pay is the function to test.
func pay(ctx context.Context, lock doer, invoice int) error {
	return lock.Do(ctx, func(ctx context.Context) error {
		if ctx.Err() != nil {
			return context.Cause(ctx) // the lock is lost, or the caller has given up
		}
		fmt.Println("paid", invoice)
		return nil
	})
}

// freeLock is a fake that is always free.
type freeLock struct{}

func (freeLock) Do(ctx context.Context, f func(context.Context) error) error { return f(ctx) }

// lostLock is a fake that is lost before the work has begun.
type lostLock struct{}

func (lostLock) Do(ctx context.Context, f func(context.Context) error) error {
	ctx, lose := context.WithCancelCause(ctx)
	lose(session.ErrLost)
	return errors.Join(session.ErrLost, f(ctx))
}

// A function that takes an interface of its own, with the one method Do, can be given any lock. In a
// unit test it can be given a fake.
func Example_fake() {
	ctx := context.Background()
	fmt.Println(pay(ctx, freeLock{}, 42))
	err := pay(ctx, lostLock{}, 43)
	fmt.Println("lost:", errors.Is(err, session.ErrLost))
	// Output:
	// paid 42
	// <nil>
	// lost: true
}
