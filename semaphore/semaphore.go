package semaphore

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ErrNotHeld is zklock.ErrNotHeld.
var ErrNotHeld = share.ErrNotHeld

// Semaphore is a number of leases that all processes that use the same path share. It is the queue of package
// [queue]: a request is one node, which is granted when its leases fit beside those of all nodes ahead of it.
//
// The method of the same name of zklock.Mutex says what a method waits for, returns and promises; here is what is
// different. A semaphore ignores owners ([queue.WithOwner]): each Lock takes another lease.
type Semaphore struct {
	_ misuse.NoCopy

	door // for zklock.Multi

	lock    share.Lock
	max     int
	curator *curator // nil for the semaphore's own layout
}

type door = share.Door[*Semaphore]

func (s *Semaphore) made() *Semaphore {
	if s == nil || s.lock.Queue == nil {
		panic("semaphore: Semaphore not made by New")
	}
	return s
}

func (s *Semaphore) called(ctx context.Context, method string) *Semaphore {
	s.made()
	misuse.Context(ctx, method)
	return s
}

// New returns the semaphore of maxLeases leases at path, as New of package zklock returns a mutex. Two Semaphore
// values at one path share its leases. If another limit is in force, requests fail with [queue.ErrConflict], unless
// it was set with [Semaphore.Resize].
func New(m *session.Manager, path string, maxLeases int, opts ...Option) (*Semaphore, error) {
	var o options
	err := share.Join(checkCount(maxLeases), share.Apply(opts, &o, Option.apply))
	s := &Semaphore{max: maxLeases}
	if err == nil {
		err = s.open(m, path, &o)
	}
	if err != nil {
		return nil, fmt.Errorf("semaphore: %w", err)
	}
	return s, nil
}

func (s *Semaphore) open(m *session.Manager, path string, o *options) error {
	q, err := queue.New(m, path)
	if err != nil {
		return errors.Unwrap(err) // without the name of package queue
	}
	kind := &queue.Kind{Name: "semaphore", Prefixes: []string{queue.PrefixLease}, Configuration: &queue.Configuration{
		Config: limit{MaxLeases: s.max, Default: true, Version: 1}.encode(), Policy: s.policy, Rivals: []string{curatorLocks, curatorLeases},
	}}
	s.lock.Open(q, kind, &o.Options)
	s.lock.Holds.Apart = true
	if o.curatorLayout {
		if s.curator, err = newCurator(q, s.max, o.Name); err != nil {
			return err
		}
		s.lock.Entry = s.curator.leases
		s.lock.Gate = &share.Gate{Entry: s.curator.gate, Pass: s.curator.acquire}
	}
	s.door = share.DoorTo[*Semaphore](&s.lock)
	return nil
}

// Lock waits for its turn and takes one lease. It fails as [Semaphore.AcquireN] does.
func (s *Semaphore) Lock(ctx context.Context) error {
	return s.called(ctx, "semaphore: Semaphore.Lock").lock.Lock(ctx, s.lock.Acquire)
}

// TryLock takes one lease if one is free. It returns false and nil if all are held, or another contender is ahead.
func (s *Semaphore) TryLock(ctx context.Context) (bool, error) {
	return s.called(ctx, "semaphore: Semaphore.TryLock").lock.TryLock(ctx, s.lock.Acquire)
}

// Unlock gives back a lease that Lock or TryLock took: a lost one if there is one, otherwise the oldest. It cannot
// tell which goroutine calls it, and may report the loss of another one's lease. Where that matters, use
// [Semaphore.Do] or [Semaphore.Acquire].
func (s *Semaphore) Unlock() error { return s.made().lock.Unlock() }

// Held reports whether Lock, TryLock or Do of this Semaphore holds a lease.
func (s *Semaphore) Held() bool { return s.made().lock.Held() }

// Done returns a channel that is closed when the latest hold ends, or if there is none. Where several goroutines
// share the Semaphore, use the Done of a lease.
func (s *Semaphore) Done() <-chan struct{} { return s.made().lock.Done() }

// Acquire is [Semaphore.AcquireN] for one lease.
func (s *Semaphore) Acquire(ctx context.Context) (*queue.Lease, error) {
	return s.called(ctx, "semaphore: Semaphore.Acquire").lock.Acquire(ctx, false)
}

// TryAcquire is [Semaphore.TryAcquireN] for one lease.
func (s *Semaphore) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return s.called(ctx, "semaphore: Semaphore.TryAcquire").lock.Acquire(ctx, true)
}

// AcquireN waits for its turn and takes n leases, all or none, as one handle. It fails as Lock of zklock.Mutex does,
// and with [session.ErrInvalid] if n is below one or above the limit in force, also after a [Semaphore.Resize].
func (s *Semaphore) AcquireN(ctx context.Context, n int) (*queue.Lease, error) {
	return s.called(ctx, "semaphore: Semaphore.AcquireN").acquire(ctx, n, false)
}

// TryAcquireN is AcquireN without waiting for a holder. It returns [queue.ErrBusy] if n leases are not free, or if a
// contender is ahead.
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) (*queue.Lease, error) {
	return s.called(ctx, "semaphore: Semaphore.TryAcquireN").acquire(ctx, n, true)
}

// acquire refuses what can never be granted. If a limit below that of New is in force, the queue finds out.
func (s *Semaphore) acquire(ctx context.Context, n int, try bool) (*queue.Lease, error) {
	if n == 1 {
		return s.lock.Acquire(ctx, try)
	}
	ctx, waited := queue.BeginWait(ctx)
	err := checkCount(n)
	switch {
	case err != nil:
	case s.curator != nil:
		err = misuse.Invalidf("%d leases at once: in Curator's layout each node is one lease", n)
	case n > s.max:
		var most int
		if most, err = s.readLimit(ctx); err == nil && n > most {
			err = misuse.Invalidf("%d leases: the limit is %d", n, most)
		}
	}
	if err != nil {
		return nil, waited(s.lock.Failed("acquire", err))
	}
	r, acquire := s.lock.Request(), s.lock.Queue.Acquire
	if r.Weight = n; try {
		acquire = s.lock.Queue.TryAcquire
	}
	l, err := acquire(ctx, r)
	return l, waited(err)
}

// Do calls f while it holds one lease, as Do of zklock.Mutex does.
func (s *Semaphore) Do(ctx context.Context, f func(context.Context) error) error {
	return s.called(ctx, "semaphore: Semaphore.Do").lock.Do(ctx, s.lock.Acquire, f)
}

// TryDo is [Semaphore.Do] without waiting for a holder.
func (s *Semaphore) TryDo(ctx context.Context, f func(context.Context) error) (ran bool, err error) {
	return s.called(ctx, "semaphore: Semaphore.TryDo").lock.TryDo(ctx, s.lock.Acquire, f)
}

// Path returns the path that was given to [New].
func (s *Semaphore) Path() string { return s.made().lock.Path }

// Manager returns the session manager that was given to [New].
func (s *Semaphore) Manager() *session.Manager { return s.made().lock.Manager }

// Contenders returns the holders and the waiters of all processes, in the order of the queue. A [Semaphore.Resize]
// that lowers the limit is one of them.
func (s *Semaphore) Contenders(ctx context.Context) ([]queue.Contender, error) {
	s.called(ctx, "semaphore: Semaphore.Contenders")
	if s.curator != nil {
		return s.curator.contenders(ctx)
	}
	return s.lock.Queue.Contenders(ctx, s.lock.Kind)
}
