//go:build linux

package nemesis

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// The tried locks are taken by tries now and then. A refusal must have a reason. In some processes the mutex has local
// hand-over.

const (
	triedName    = "tried-mutex"
	triedRWName  = "tried-rwlock"
	triedSemName = "tried-semaphore"

	triedHands = 2 // of each worker
	triedLimit = 2 // of the semaphore
)

// triedLock is one lock of this module in which calls of all kinds take what they are told.
type triedLock struct {
	acquire, try acquires
	claim        claim
}

func (o *ours) openTried(p place) (func(*rand.Rand) contender, error) {
	open := o.triedSemaphore
	switch p.name() {
	case triedName:
		open = o.triedMutex
	case triedRWName:
		open = o.triedRW
	}
	all, err := open(p.path)
	return func(r *rand.Rand) contender {
		return &ourTried{all: all, live: func() *session.Session { return o.m.Status().Session }, random: r}
	}, err
}

func (o *ours) triedMutex(path string) ([]triedLock, error) {
	var opts []zklock.Option
	if o.handsOn {
		opts = append(opts, zklock.WithLocalHandover(handOvers))
	}
	m, err := zklock.New(o.m, path, opts...)
	if err != nil {
		return nil, err
	}
	return []triedLock{{m.Acquire, m.TryAcquire, claim{}}}, nil
}

func (o *ours) triedRW(path string) ([]triedLock, error) {
	rw, err := rwlock.New(o.m, path)
	if err != nil {
		return nil, err
	}
	return []triedLock{{rw.Acquire, rw.TryAcquire, claim{}}, {rw.Reader().Acquire, rw.Reader().TryAcquire, claim{Reads: true}}}, nil
}

func (o *ours) triedSemaphore(path string) (all []triedLock, err error) {
	s, err := semaphore.New(o.m, path, triedLimit)
	if err != nil {
		return nil, err
	}
	for n := 1; n <= triedLimit; n++ {
		all = append(all, triedLock{
			func(ctx context.Context) (*queue.Lease, error) { return s.AcquireN(ctx, n) },
			func(ctx context.Context) (*queue.Lease, error) { return s.TryAcquireN(ctx, n) },
			claim{Weight: n},
		})
	}
	return all, nil
}

// ourTried waits after a try that was refused, so that it is served.
type ourTried struct {
	all     []triedLock
	live    func() *session.Session
	random  *rand.Rand
	refused bool
}

func (b *ourTried) acquire(ctx context.Context) (hold, error) {
	lock := b.all[b.random.IntN(len(b.all))]
	h, err := b.take(ctx, lock, !b.refused && b.random.IntN(3) == 0)
	b.refused = errors.Is(err, queue.ErrBusy)
	return h, err
}

// sole takes the lock in each of its ways when nobody else has it or wants it.
func (b *ourTried) sole() (ways []func(context.Context) (hold, error)) {
	for _, lock := range b.all {
		for _, try := range []bool{true, false} {
			ways = append(ways, func(ctx context.Context) (hold, error) { return b.take(ctx, lock, try) })
		}
	}
	return ways
}

func (b *ourTried) take(ctx context.Context, lock triedLock, try bool) (hold, error) {
	get := lock.acquire
	if try {
		get = lock.try
	}
	session, has := b.live(), lock.claim
	lease, err := get(ctx)
	ahead := 1 // for certain, when a try was refused
	if has.Moved = session == nil || b.live() != session; has.Moved {
		ahead = 0 // what was ahead may have been its own
	}
	if try && errors.Is(err, queue.ErrBusy) {
		return nil, &refusal{err, refused{Ahead: ahead, Gone: ctx.Err() == nil && !has.Moved}, has}
	}
	if err != nil {
		return nil, err
	}
	h := &triedHold{ourHold: ourHold{lease, has}}
	h.works, h.done = lease.Context(context.Background())
	return h, nil
}

// refusal is the error of a try.
type refusal struct {
	error
	how   refused
	claim claim // what it wanted
}

func (r *refusal) Unwrap() error { return r.error }

// triedHold is a hold whose work is done under a context.
type triedHold struct {
	ourHold
	works context.Context
	done  context.CancelFunc
}

// held is true also if only the context of the work says so.
func (h *triedHold) held() bool { return h.works.Err() == nil || h.ourHold.held() }

func (h *triedHold) release(ctx context.Context) error {
	defer h.done()
	return h.ourHold.release(ctx)
}
