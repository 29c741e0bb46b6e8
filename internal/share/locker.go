package share

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

const complainEvery = time.Minute

// Locker returns the holds as a [sync.Locker]: see Locker of zklock.Mutex. onLost may be nil.
func (h *Holds[L]) Locker(get Get[L], onLost func(error)) sync.Locker {
	return &locker[L]{holds: h, get: get, onLost: onLost}
}

type locker[L Lease] struct {
	holds  *Holds[L]
	get    Get[L]
	onLost func(error)

	left atomic.Bool // a Lock has ended its goroutine

	mu         sync.Mutex
	complained time.Time
}

func (l *locker[L]) Lock() {
	for waits := (rounds.Backoff{First: time.Second, Most: 5 * time.Second}); ; {
		held, err := l.holds.take(context.Background(), false, viaLock, l.get)
		if err == nil && l.onLost != nil {
			held.Lease.AfterEnd(func() {
				if err := held.Lease.Err(); !errors.Is(err, queue.ErrReleased) && !errors.Is(err, session.ErrClosed) {
					l.onLost(err)
				}
			})
		}
		if err == nil {
			return
		}
		m := l.holds.Manager
		if errors.Is(err, session.ErrClosed) || m.State() == session.Closed {
			l.left.Store(true)
			m.Logger().Warn("turnstile: Lock ends its goroutine", "lock", l.holds.Path, "err", session.ErrClosed)
			runtime.Goexit()
		}
		l.mu.Lock()
		due := time.Since(l.complained) >= complainEvery
		if due {
			l.complained = time.Now()
		}
		l.mu.Unlock()
		if due {
			m.Logger().Warn("turnstile: Lock failed and tries again", "lock", l.holds.Path, "err", err)
		}
		_ = rounds.Until(context.Background(), m.Done(), waits.Next())
	}
}

// Unlock panics if nothing is held, unless a goroutine has ended in Lock: that one runs its deferred Unlock although
// it holds nothing, for example after the Wait of a sync.Cond.
func (l *locker[L]) Unlock() {
	if err := l.holds.Unlock(); errors.Is(err, ErrNotHeld) && !l.left.Load() {
		panic(fmt.Sprintf("turnstile: %v", err))
	}
}
