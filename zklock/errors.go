package zklock

import "github.com/turnstile-go/turnstile/internal/hold"

// ErrNotHeld is returned by Unlock when there is no Lock or TryLock of the same object to give
// back. What a Do holds does not count. rwlock.ErrNotHeld and semaphore.ErrNotHeld are the same
// value.
var ErrNotHeld = hold.ErrNotHeld
