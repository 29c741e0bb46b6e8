package semaphore

import "github.com/turnstile-go/turnstile/internal/hold"

// ErrNotHeld is returned by Unlock when there is no Lock or TryLock of the same object to give back.
// What a Do holds does not count. zklock.ErrNotHeld and rwlock.ErrNotHeld are the same value.
var ErrNotHeld = errNotHeld() // "lock is not held"

// A function, so that go doc does not show the internal package that has the value.
func errNotHeld() error { return hold.ErrNotHeld }
