package zklock

import "github.com/turnstile-go/turnstile/internal/hold"

// ErrNotHeld is returned by Unlock when the lock is not held by anyone who came in
// through Lock, TryLock or Do of this object. The locks of rwlock and semaphore return it
// too.
var ErrNotHeld = hold.ErrNotHeld
