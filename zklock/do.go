package zklock

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/queue"
)

// Do calls f while holding the mutex, and always unlocks, also when f panics. The
// context that f is given ends with ctx, and when the lock is lost; [context.Cause]
// tells which. It carries the owner of ctx, if there is one.
//
// Do returns the error of f, joined with [session.ErrLost] if the lock was lost before f
// returned; or, without having called f, what Lock returns. That the server has not yet
// confirmed the release is not reported: f is done and the lock given up.
func (m *Mutex) Do(ctx context.Context, f func(context.Context) error) (err error) {
	h, err := m.lock(ctx, m.q.Acquire, m.waitSlot)
	if err != nil {
		return err
	}
	inside, cancel := h.lease.Context(ctx)
	defer cancel()
	defer func() {
		if unlockErr := m.unlock(h); !errors.Is(unlockErr, queue.ErrReleasePending) {
			err = errors.Join(err, unlockErr)
		}
	}()
	return f(inside)
}
