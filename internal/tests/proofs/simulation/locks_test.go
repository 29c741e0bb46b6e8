package simulation

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// leaser is what a worker needs of a lock, in one of its modes.
type leaser interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

// locker is a lock that can also be held without a handle.
type locker interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) (bool, error)
	Unlock() error
	Held() bool
}

// builder makes the locks below a path, once for each mode.
type builder struct {
	w    *world
	m    *session.Manager
	path string
	made map[string]any
	both map[string]*rwlock.RWMutex // by side: both sides have one
}

func newBuilder(w *world, m *session.Manager, path string) *builder {
	return &builder{w, m, path, make(map[string]any), make(map[string]*rwlock.RWMutex)}
}

// lock returns the lock of a mode: a leaser, a locker or both, a doer, a candidate, or an observer.
func (b *builder) lock(mode string) (any, error) {
	if l := b.made[mode]; l != nil {
		return l, nil
	}
	if b.w.kind.election {
		return map[string]any{"lead": candidate{b.m, b.path}, "observe": observer{b.m, b.path}}[mode], nil
	}
	u := b.w.kind.usages[mode]
	var parts []any
	for _, p := range u.parts {
		l, err := b.part(mode, u, p)
		if err != nil {
			return nil, err
		}
		parts = append(parts, l)
	}
	l := parts[0]
	if len(parts) > 1 {
		var all []zklock.ContextLocker
		for _, one := range parts {
			if w, ok := one.(writer); ok {
				one = w.RWMutex
			}
			all = append(all, one.(zklock.ContextLocker))
		}
		multi, err := zklock.Multi(all...)
		if err != nil {
			return nil, err
		}
		l = multi
	}
	if u.do {
		l = doer{l.(locker)}
	}
	b.made[mode] = l
	return l, nil
}

// part makes what a mode takes in one directory.
func (b *builder) part(mode string, u usage, p part) (any, error) {
	keep := b.w.keeps[mode]
	switch {
	case p.mode == "lock":
		var opts []zklock.Option
		if u.most > 0 {
			opts = append(opts, zklock.WithLocalHandover(u.most))
		}
		if u.lazy {
			opts = append(opts, zklock.WithLazyRelease(keep))
		}
		if u.async {
			opts = append(opts, zklock.WithAsyncRelease())
		}
		if u.keyed {
			all, err := zklock.NewKeyed(b.m, b.path, opts...)
			return keyLock{all, p.dir[1:]}, err
		}
		return zklock.New(b.m, b.path+p.dir, opts...)
	case isCount(p.mode):
		var opts []semaphore.Option
		dir, n := b.path+p.dir, atoi(p.mode)
		if u.async {
			opts = append(opts, semaphore.WithAsyncRelease())
		}
		if b.w.kind.curator {
			dir, opts = b.path, append(opts, semaphore.WithCuratorLayout())
		}
		s, err := semaphore.New(b.m, dir, leases, opts...)
		if n == 1 || err != nil {
			return s, err
		}
		return leaseFuncs{
			func(ctx context.Context) (*queue.Lease, error) { return s.AcquireN(ctx, n) },
			func(ctx context.Context) (*queue.Lease, error) { return s.TryAcquireN(ctx, n) },
		}, nil
	}
	var opts []rwlock.Option
	if u.lazy {
		opts = append(opts, rwlock.WithLazyRelease(keep))
	}
	if u.async {
		opts = append(opts, rwlock.WithAsyncRelease())
	}
	rw := b.both[side(mode)]
	if rw == nil {
		var err error
		if rw, err = rwlock.New(b.m, b.path+p.dir, opts...); err != nil {
			return nil, err
		}
		b.both[side(mode)] = rw
	}
	switch {
	case p.mode == "write":
		return writer{rw}, nil
	case u.shared && len(u.parts) == 1: // each hold has a lease of its own: RUnlock would give back the hold of any of them
		return leaseFuncs{rw.Reader().Acquire, rw.Reader().TryAcquire}, nil
	}
	return rw.Reader(), nil
}

// leaseFuncs is a lock of which each hold has a lease of its own.
type leaseFuncs struct {
	acquire, try func(context.Context) (*queue.Lease, error)
}

func (l leaseFuncs) Acquire(ctx context.Context) (*queue.Lease, error)    { return l.acquire(ctx) }
func (l leaseFuncs) TryAcquire(ctx context.Context) (*queue.Lease, error) { return l.try(ctx) }

// writer is the write side, with the whole lock at hand.
type writer struct{ *rwlock.RWMutex }

// keyLock is the lock of one key, which its Keyed forgets between two uses.
type keyLock struct {
	all *zklock.Keyed
	key string
}

func (l keyLock) Lock(ctx context.Context) error            { return l.all.Lock(ctx, l.key) }
func (l keyLock) TryLock(ctx context.Context) (bool, error) { return l.all.TryLock(ctx, l.key) }
func (l keyLock) Unlock() error                             { return l.all.Unlock(l.key) }
func (l keyLock) Held() bool                                { return l.all.Held(l.key) }
func (l keyLock) Acquire(ctx context.Context) (*queue.Lease, error) {
	return l.all.Acquire(ctx, l.key)
}
func (l keyLock) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return l.all.TryAcquire(ctx, l.key)
}
func (l keyLock) Do(ctx context.Context, f func(context.Context) error) error {
	return l.all.Do(ctx, l.key, f)
}
