package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// LockerOption changes what [Mutex.Locker] returns.
type LockerOption interface{ apply(*locker) }

type lockerOption func(*locker)

func (o lockerOption) apply(l *locker) { o(l) }

// OnLost sets what to call when the lock is lost between Lock and Unlock: once per hold,
// as soon as it is known, from a goroutine of its own, with an error that matches
// [session.ErrLost] or [session.ErrClosed]. A program that cannot go on safely ends
// itself here. Default: the loss shows in [Mutex.Held] alone.
func OnLost(f func(error)) LockerOption {
	return lockerOption(func(l *locker) {
		if f != nil {
			l.onLost = f
		}
	})
}

// Locker returns the mutex as a [sync.Locker], for code that wants one. It shares the
// holder's slot with Lock and Unlock of the Mutex.
//
// Its Lock returns only when it holds the lock, whatever has to be tried again; it panics
// when the manager is closed, as there is no other way to say so. Its Unlock panics when
// the lock is not held, as that of [sync.Mutex] does; a lock that was lost does not
// panic: see [OnLost].
func (m *Mutex) Locker(opts ...LockerOption) sync.Locker {
	l := &locker{m: m, onLost: func(error) {}}
	for _, o := range opts {
		if o != nil {
			o.apply(l)
		}
	}
	return l
}

type locker struct {
	m      *Mutex
	onLost func(error)
}

func (l *locker) Lock() {
	wait := backoff.NewExponentialBackOff()
	wait.MaxInterval = 5 * time.Second
	for {
		h, err := l.m.lock(context.Background(), l.m.q.Acquire, l.m.waitSlot)
		switch {
		case err == nil:
			l.watch(h.lease)
			return
		case errors.Is(err, session.ErrClosed):
			panic(fmt.Sprintf("zklock: Lock of %s: %v", l.m.q.Path(), err))
		}
		// The server refuses: whoever repairs that should not have to restart us.
		time.Sleep(wait.NextBackOff())
	}
}

// watch calls onLost when the lease ends otherwise than by its release.
func (l *locker) watch(lease *queue.Lease) {
	ctx, cancel := lease.Context(context.Background())
	context.AfterFunc(ctx, func() {
		defer cancel()
		if err := lease.Err(); !errors.Is(err, queue.ErrReleased) {
			l.onLost(err)
		}
	})
}

func (l *locker) Unlock() {
	if err := l.m.Unlock(); errors.Is(err, ErrNotHeld) {
		panic(fmt.Sprintf("zklock: %v", err))
	}
}
