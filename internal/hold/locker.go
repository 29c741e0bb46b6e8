package hold

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/session"
)

// complainEvery is how often a Locker logs that its Lock is refused.
const complainEvery = time.Minute

// Locker returns holds as a [sync.Locker]. Its Lock tries again after every error, and ends its
// goroutine when the manager is closed. Its Unlock panics when nothing is held. onLost is called when
// the lock is lost between Lock and Unlock. It may be nil.
func (h *Holds[L]) Locker(onLost func(error)) sync.Locker {
	return &locker[L]{holds: h, onLost: onLost}
}

type locker[L Lease] struct {
	holds  *Holds[L]
	onLost func(error) // may be nil

	left atomic.Bool // a Lock has ended its goroutine

	mu         sync.Mutex
	complained time.Time // when a refusal was logged, for all goroutines
}

func (l *locker[L]) Lock() {
	wait := backoff.NewExponentialBackOff()
	wait.MaxInterval = 5 * time.Second
	for {
		h, err := l.holds.lock(context.Background(), viaLock)
		switch {
		case err == nil:
			l.watch(h)
			return
		case errors.Is(err, session.ErrClosed):
			l.leave(err)
		}
		// The server refuses. After an operator has repaired that, the program need not restart.
		l.complain(err)
		if !l.holds.pause(wait.NextBackOff()) {
			l.leave(l.holds.acquiring(session.ErrClosed))
		}
	}
}

// complain logs why Lock tries again, unless it has done so in the last minute.
func (l *locker[L]) complain(err error) {
	l.mu.Lock()
	now := time.Now()
	due := now.Sub(l.complained) >= complainEvery
	if due {
		l.complained = now
	}
	l.mu.Unlock()
	if due {
		l.holds.log().Warn("turnstile: Lock failed and tries again", "lock", l.holds.path, "err", err)
	}
}

// leave ends the calling goroutine, which cannot have the lock any more.
func (l *locker[L]) leave(err error) {
	l.left.Store(true)
	l.holds.log().Warn("turnstile: Lock ends its goroutine", "lock", l.holds.path, "err", err)
	runtime.Goexit()
}

// watch calls onLost when the lease ends, unless the program itself has ended it, by a release or
// by closing the manager.
func (l *locker[L]) watch(held *Hold[L]) {
	if l.onLost == nil {
		return
	}
	lease := held.Lease
	lease.AfterEnd(func() {
		if err := lease.Err(); !errors.Is(err, place.ErrReleased) && !errors.Is(err, session.ErrClosed) {
			l.onLost(err)
		}
	})
}

func (l *locker[L]) Unlock() {
	// A goroutine that ends in Lock runs its deferred Unlock although it holds nothing: for
	// example one that was in the Wait of a sync.Cond.
	if err := l.holds.Unlock(); errors.Is(err, ErrNotHeld) && !l.left.Load() {
		panic(fmt.Sprintf("turnstile: %v", err))
	}
}
