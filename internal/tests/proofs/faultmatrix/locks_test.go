package faultmatrix

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/elected"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// subject is a lock with a protocol of its own, and its contenders.
type subject struct {
	name string
	// ours takes the lock through the faults. first had it before, unless nil; rival comes
	// after. Both exclude ours, and first excludes all.
	first, ours, rival taker
	// last takes the lock when all others are gone; nil: first does, or else ours.
	last taker
	// noCancel says that the cancelled acquisition is the same as another subject's.
	noCancel bool
	slack    int // what nodes ahead of a holder may weigh
}

// fresh takes the lock when there is no other holder of any kind.
func (s subject) fresh() taker {
	switch {
	case s.last != nil:
		return s.last
	case s.first != nil:
		return s.first
	}
	return s.ours
}

// taker takes a lock through a manager; it returns what [zklock.Mutex.Acquire] does.
type taker func(ctx context.Context, m *session.Manager, path string) (*hold, error)

// held is what a taker gets: a lease, several, or something like it.
type held interface {
	Err() error
	Done() <-chan struct{} // nil if the kind has none
	Release(context.Context) error
}

// hold is one granted lock, of whatever kind.
type hold struct {
	held
	leases []*queue.Lease
}

// settle makes the holder's first requests, and returns when they are answered: of a lease, the last one sets the watch on
// the holder's own node.
func (h *hold) settle(ctx context.Context) error {
	for _, l := range h.leases {
		if _, err := l.Token(ctx); err != nil {
			return err
		}
	}
	return nil
}

// single is a hold of one lease.
func single(l *queue.Lease, err error) (*hold, error) {
	if err != nil {
		return nil, err
	}
	return &hold{held: l, leases: []*queue.Lease{l}}, nil
}

// take takes a lock that is made without an error.
func take(ctx context.Context, lock interface {
	Acquire(context.Context) (*queue.Lease, error)
}, err error) (*hold, error) {
	if err != nil {
		return nil, err
	}
	return single(lock.Acquire(ctx))
}

// subjects returns all protocols.
func subjects() []subject {
	abc := several("a", "b", "c")
	return []subject{
		{name: "mutex", first: mutex, ours: mutex, rival: mutex},
		{name: "mutex-new-path", ours: mutex, rival: mutex, noCancel: true},
		{name: "try", ours: trier, rival: mutex, noCancel: true},
		{name: "election", first: candidate, ours: candidate, rival: candidate},
		{name: "election-resign", first: candidate, ours: resigner, rival: candidate, noCancel: true},
		{name: "multi", first: several("a", "b"), ours: several("a", "b"), rival: several("a", "b")},
		{name: "multi-middle", first: middle, ours: abc, rival: abc, last: abc},
		{name: "write", first: writer, ours: writer, rival: reader},
		{name: "read", first: writer, ours: reader, rival: writer},
		{name: "semaphore", first: permits(2), ours: permits(2), rival: permits(2), slack: leases - 2},
		{name: "semaphore-resize", first: permits(leases), ours: resizer, rival: permits(leases), slack: leases - 2},
		{name: "semaphore-curator", first: inCurators, ours: inCurators, rival: inCurators},
	}
}

func mutex(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	mx, err := zklock.New(m, path)
	return take(ctx, mx, err)
}

// trier tries until it has the lock. Each try looks before it enters.
func trier(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	mx, err := zklock.New(m, path)
	if err != nil {
		return nil, err
	}
	for {
		l, err := mx.TryAcquire(ctx)
		if !errors.Is(err, queue.ErrBusy) { // by a node of ours from a session that was lost, for example
			return single(l, err)
		}
	}
}

// several takes mutexes together.
func several(names ...string) taker {
	return func(ctx context.Context, m *session.Manager, path string) (*hold, error) {
		var locks []zklock.ContextLocker
		for _, name := range names {
			l, err := zklock.New(m, path+"/"+name)
			if err != nil {
				return nil, err
			}
			locks = append(locks, l)
		}
		all, err := zklock.Multi(locks...)
		if err != nil {
			return nil, err
		}
		l, err := all.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &hold{held: l, leases: l.Leases()}, nil
	}
}

// middle takes the second of three locks, so that a contender for all three has to wait there.
func middle(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	return mutex(ctx, m, path+"/b")
}

// candidate leads for one term.
func candidate(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	t, err := elected.Acquire(ctx, m, path)
	if err != nil {
		return nil, err
	}
	return &hold{held: t, leases: []*queue.Lease{t.Lease}}, nil
}

func resigner(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	h, err := candidate(ctx, m, path)
	if err == nil {
		h.held = resigns{h.held.(*elected.Term)}
	}
	return h, err
}

type resigns struct{ *elected.Term }

func (r resigns) Release(ctx context.Context) error { return r.Resign(ctx) }

// unlessPending returns the error of a release, or nil if the release is certain. An election does not say whether it is
// confirmed.
func unlessPending(err error) error {
	if errors.Is(err, queue.ErrReleasePending) {
		return nil
	}
	return err
}

func writer(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	rw, err := rwlock.New(m, path)
	return take(ctx, rw, err)
}

func reader(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	rw, err := rwlock.New(m, path)
	if err != nil {
		return nil, err
	}
	return take(ctx, rw.Reader(), nil)
}

// leases is the semaphore's limit. Each contender wants two.
const leases = 3

// permits takes so many leases.
func permits(n int) taker {
	return func(ctx context.Context, m *session.Manager, path string) (*hold, error) {
		s, err := semaphore.New(m, path, leases)
		if err != nil {
			return nil, err
		}
		return single(s.AcquireN(ctx, n))
	}
}

// resizer makes it one lease more and one less again before it takes two. By either limit these and the three of anybody
// else are too many. It cannot lower the limit while it holds them: that is an acquisition, which comes after the rival that
// waits for these leases.
func resizer(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	s, err := semaphore.New(m, path, leases)
	if err != nil {
		return nil, err
	}
	for _, n := range []int{leases + 1, leases} {
		if err := s.Resize(ctx, n); err != nil {
			return nil, err
		}
	}
	return single(s.AcquireN(ctx, 2))
}

func inCurators(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	s, err := semaphore.New(m, path, 1, semaphore.WithCuratorLayout())
	return take(ctx, s, err)
}
