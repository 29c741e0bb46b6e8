package rwlock

import (
	"errors"

	"github.com/turnstile-go/turnstile/internal/hold"
)

var (
	// ErrUpgrade is returned by Lock, TryLock and Do to an owner that holds the read lock
	// and not the write lock. It would wait for itself, and two of them for each other.
	// The read lock stays. Give it up first, and look again, once the write lock is there,
	// at what was read: a writer may have been in between.
	ErrUpgrade = errors.New("a read lock cannot become a write lock")

	// ErrNotHeld is returned by Unlock and RUnlock when there is nothing to give back: the
	// same value as that of zklock.
	ErrNotHeld = hold.ErrNotHeld
)
