package zklock

import "errors"

// ErrNotHeld is returned by Unlock when the mutex is not held by anyone who came in
// through Lock, TryLock or Do of this Mutex.
var ErrNotHeld = errors.New("lock is not held")
