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

// LockerConfig is the sum of a Locker's options.
type LockerConfig struct {
	OnLost    func(error) // the lock was lost between Lock and Unlock; nil: nothing happens
	OnRefused func(error) // Lock has failed, and is about to try again; nil: a log line
	OnClosed  func(error) // Lock finds the manager closed, and is about to end its goroutine; nil: a log line
}

// LockerConfigOf applies the options of a Locker. A nil option is ignored.
func LockerConfigOf[O comparable](opts []O, apply func(O, *LockerConfig)) (c LockerConfig) {
	var none O
	for _, o := range opts {
		if o != none {
			apply(o, &c)
		}
	}
	return c
}

// Locker returns holds as a [sync.Locker]. Its Lock tries again after every error, and ends its
// goroutine when the manager is closed. Its Unlock panics when nothing is held.
func (h *Holds[L]) Locker(c LockerConfig) sync.Locker {
	return &locker[L]{LockerConfig: c, holds: h}
}

type locker[L Lease] struct {
	LockerConfig
	holds *Holds[L]

	left    atomic.Bool // a Lock has ended its goroutine
	trouble complaints
}

func (l *locker[L]) Lock() {
	wait := backoff.NewExponentialBackOff()
	wait.MaxInterval = 5 * time.Second
	for {
		h, err := l.holds.lock(context.Background(), viaLock)
		switch {
		case err == nil:
			l.trouble.over()
			l.watch(h)
			return
		case errors.Is(err, session.ErrClosed):
			l.leave(err)
		}
		// The server refuses. After an operator has repaired that, the program need not restart.
		if l.trouble.isNews(err) {
			l.complain(err)
		}
		if !l.holds.pause(wait.NextBackOff()) {
			l.leave(l.holds.acquiring(session.ErrClosed))
		}
	}
}

func (l *locker[L]) complain(err error) {
	if l.OnRefused != nil {
		l.OnRefused(err)
		return
	}
	l.holds.log().Warn("turnstile: Lock failed and tries again", "lock", l.holds.path, "err", err)
}

// leave ends the calling goroutine, which cannot have the lock any more.
func (l *locker[L]) leave(err error) {
	l.left.Store(true)
	if l.OnClosed != nil {
		l.OnClosed(err)
	} else {
		l.holds.log().Warn("turnstile: Lock ends its goroutine", "lock", l.holds.path, "err", err)
	}
	runtime.Goexit()
}

// watch calls OnLost when the lease ends, unless the program itself has ended it, by a release or
// by closing the manager.
func (l *locker[L]) watch(held *Hold[L]) {
	if l.OnLost == nil {
		return
	}
	lease := held.Lease
	lease.AfterEnd(func() {
		if err := lease.Err(); !errors.Is(err, place.ErrReleased) && !errors.Is(err, session.ErrClosed) {
			l.OnLost(err)
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
