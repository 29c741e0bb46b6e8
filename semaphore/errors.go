package semaphore

import "github.com/turnstile-go/turnstile/internal/hold"

// ErrNotHeld is returned by Unlock when nobody who came in through Lock, TryLock or Do of
// this object holds a lease. It is that of package zklock.
var ErrNotHeld = hold.ErrNotHeld
