package zklock

import "github.com/turnstile-go/turnstile/internal/hold"

// ErrNotHeld is returned by Unlock when there is no Lock or TryLock of this object to give back.
// What a Do holds does not count. The locks of rwlock and semaphore return it too.
var ErrNotHeld = hold.ErrNotHeld
