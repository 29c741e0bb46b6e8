package zklock

import (
	"errors"

	"github.com/turnstile-go/turnstile/internal/share"
)

// ErrNotHeld is returned by Unlock when there is no Lock or TryLock of the same object to give
// back. What a Do holds does not count. rwlock.ErrNotHeld and semaphore.ErrNotHeld are the same
// value.
var ErrNotHeld = errNotHeld() // "lock is not held"

// errNotHeld is a function, so that go doc does not show the internal package that has the value.
func errNotHeld() error { return share.ErrNotHeld }

// ErrNotRevocable is returned by [Revoke] if the contender does not listen: it is of a state of this module before
// 0.1.0, and its lock was made without WithRevocable.
var ErrNotRevocable = errors.New("contender does not listen to requests to release its lock")
