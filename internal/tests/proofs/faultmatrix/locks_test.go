package faultmatrix

import (
	"context"
	"errors"

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
	// weight is the weight of a node ahead for ours, and slack the weight that may remain.
	weight func(own, ahead queue.Node) int
	slack  int
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
type taker func(ctx context.Context, m *session.Manager, path string) (hold, error)

// hold is one granted lock, of whatever kind.
type hold interface {
	Err() error
	Done() <-chan struct{} // nil if the kind has none
	Release(context.Context) error

	// settle makes the holder's first requests, and returns when they are answered.
	settle(context.Context) error
	// leases returns its leases, as far as the kind shows them.
	leases() []*queue.Lease
	// standing returns the paths of its nodes that the server has.
	standing(context.Context, *cell) ([]string, error)
}

func one(queue.Node, queue.Node) int { return 1 }

// subjects returns all protocols.
func subjects() []subject {
	return []subject{
		{name: "mutex", first: mutex, ours: mutex, rival: mutex, weight: one},
		{name: "mutex-new-path", ours: mutex, rival: mutex, noCancel: true, weight: one},
		{name: "async", first: mutex, ours: asyncMutex, rival: mutex, weight: one},
		{name: "try", ours: trier, rival: mutex, noCancel: true, weight: one},
		{name: "election", first: candidate, ours: candidate, rival: candidate, weight: one},
		{name: "election-resign", first: candidate, ours: resigner, rival: candidate, noCancel: true, weight: one},
		{name: "multi", first: multi, ours: multi, rival: multi, weight: one},
		{name: "multi-middle", first: middle, ours: abc, rival: abc, last: abc, weight: one},
		{name: "write", first: writer, ours: writer, rival: reader, weight: one},
		{name: "read", first: writer, ours: reader, rival: writer, weight: toReader},
		{name: "downgrade", first: writer, ours: downgrader, rival: writer, noCancel: true, weight: toReader},
		{name: "semaphore", first: two, ours: two, rival: two, weight: asked, slack: leases - 2},
		{name: "semaphore-resize", first: three, ours: resizer, rival: three, weight: asked, slack: leases - 2},
		{name: "semaphore-curator", first: inCurators, ours: inCurators, rival: inCurators, weight: one},
	}
}

func mutex(ctx context.Context, m *session.Manager, path string) (hold, error) {
	return takeMutex(ctx, m, path)
}

// trier tries until it has the lock. Each try looks before it enters.
func trier(ctx context.Context, m *session.Manager, path string) (hold, error) {
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

func takeMutex(ctx context.Context, m *session.Manager, path string, opts ...zklock.Option) (hold, error) {
	mx, err := zklock.New(m, path, opts...)
	if err != nil {
		return nil, err
	}
	return single(mx.Acquire(ctx))
}

func multi(ctx context.Context, m *session.Manager, path string) (hold, error) {
	return takeSeveral(ctx, m, path, "a", "b")
}

// abc takes three locks. middle takes the second of them, so that abc has to wait there.
func abc(ctx context.Context, m *session.Manager, path string) (hold, error) {
	return takeSeveral(ctx, m, path, "a", "b", "c")
}

func middle(ctx context.Context, m *session.Manager, path string) (hold, error) {
	return takeMutex(ctx, m, path+"/b")
}

func takeSeveral(ctx context.Context, m *session.Manager, path string, names ...string) (hold, error) {
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
	return several{l}, nil
}

func writer(ctx context.Context, m *session.Manager, path string) (hold, error) {
	rw, err := rwlock.New(m, path)
	if err != nil {
		return nil, err
	}
	return single(rw.Acquire(ctx))
}

func reader(ctx context.Context, m *session.Manager, path string) (hold, error) {
	rw, err := rwlock.New(m, path)
	if err != nil {
		return nil, err
	}
	return single(rw.Reader().Acquire(ctx))
}

// toReader is the weight for a reader: writers count, except the one whose place it has taken.
func toReader(own, ahead queue.Node) int {
	if own.Prefix == queue.PrefixRead && ahead.Prefix == queue.PrefixRead {
		return 0
	}
	return 1
}

// leases is the semaphore's limit. Each contender wants two.
const leases = 3

func two(ctx context.Context, m *session.Manager, path string) (hold, error) {
	s, err := semaphore.New(m, path, leases)
	if err != nil {
		return nil, err
	}
	return single(s.AcquireN(ctx, 2))
}

func three(ctx context.Context, m *session.Manager, path string) (hold, error) {
	s, err := semaphore.New(m, path, leases)
	if err != nil {
		return nil, err
	}
	return single(s.AcquireN(ctx, leases))
}

// resizer makes it one lease more and one less again before it takes two. By either limit these and the three of anybody
// else are too many. It cannot lower the limit while it holds them: that is an acquisition, which comes after the rival that
// waits for these leases.
func resizer(ctx context.Context, m *session.Manager, path string) (hold, error) {
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

func asked(_, ahead queue.Node) int { return ahead.Weight }

func inCurators(ctx context.Context, m *session.Manager, path string) (hold, error) {
	s, err := semaphore.New(m, path, 1, semaphore.WithCuratorLayout())
	if err != nil {
		return nil, err
	}
	return single(s.Acquire(ctx))
}
