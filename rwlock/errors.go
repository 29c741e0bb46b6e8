package rwlock

import (
	"errors"

	"github.com/turnstile-go/turnstile/internal/share"
)

var (
	// ErrUpgrade is returned by Lock, TryLock and Do if the owner of the context holds the read lock and not the write
	// lock. The call would wait for its own read lock, and two such calls for each other. The read lock stays held.
	// Unlock it first. After Lock has returned, read again what was read before, since another writer may have been in
	// between.
	ErrUpgrade = errors.New("a read lock cannot become a write lock")

	// ErrNotHeld is returned by Unlock when there is no Lock or TryLock of the same object to give back, and by RUnlock
	// when there is no RLock or TryRLock. What a Do holds does not count. zklock.ErrNotHeld and semaphore.ErrNotHeld are
	// the same value.
	ErrNotHeld = errNotHeld() // "lock is not held"
)

// errNotHeld is a function, so that go doc does not show the internal package that has the value.
func errNotHeld() error { return share.ErrNotHeld }
