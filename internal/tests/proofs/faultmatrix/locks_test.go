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
	leases []*queue.Lease                                   // as far as the kind shows them
	again  func(context.Context) error                      // its first requests; nil: they are those of the leases
	owned  func() (dir, prefix string, of *session.Session) // where its node is, if it shows no leases
}

// settle makes the holder's first requests, and returns when they are answered: of a lease, the last one sets the watch on
// the holder's own node.
func (h *hold) settle(ctx context.Context) error {
	if h.again != nil {
		return h.again(ctx)
	}
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

func multi(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	return takeSeveral(ctx, m, path, "a", "b")
}

// abc takes three locks. middle takes the second of them, so that abc has to wait there.
func abc(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	return takeSeveral(ctx, m, path, "a", "b", "c")
}

func middle(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	return mutex(ctx, m, path+"/b")
}

func takeSeveral(ctx context.Context, m *session.Manager, path string, names ...string) (*hold, error) {
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

// candidate leads for one term.
func candidate(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	t, err := elected.Acquire(ctx, m, path)
	if err != nil {
		return nil, err
	}
	return &hold{held: t, leases: []*queue.Lease{t.Lease}}, nil
}

func resigner(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	t, err := elected.Acquire(ctx, m, path)
	if err != nil {
		return nil, err
	}
	return &hold{held: resigns{t}, leases: []*queue.Lease{t.Lease}}, nil
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

// doing is a hold within a Do.
type doing struct {
	*queue.Lease
	end  context.CancelFunc
	over <-chan error
}

// Release ends the Do. That says no more than that the release is under way, unless the lock was lost.
func (d doing) Release(context.Context) error {
	d.end()
	if err := <-d.over; err != nil {
		return err
	}
	return queue.ErrReleasePending
}

func asyncMutex(ctx context.Context, m *session.Manager, dir string) (*hold, error) {
	mx, err := zklock.New(m, dir, zklock.WithAsyncRelease())
	if err != nil {
		return nil, err
	}
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	inside, over := make(chan context.Context, 1), make(chan error, 1)
	go func() {
		over <- mx.Do(ctx, func(ctx context.Context) error {
			inside <- ctx
			<-work.Done()
			return ctx.Err()
		})
	}()
	select {
	case ctx := <-inside:
		l, _ := queue.LeaseFrom(ctx)
		return &hold{held: doing{l, end, over}, leases: []*queue.Lease{l}}, nil
	case err := <-over:
		end()
		return nil, err
	}
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

// downgraded is a write lock, and then a read lock in its place. It is taken with WithOwner, which
// shows no leases.
type downgraded struct {
	rw    *rwlock.RWMutex
	reads bool // RUnlock is due; before, Unlock is
}

func downgrader(ctx context.Context, m *session.Manager, dir string) (*hold, error) {
	rw, err := rwlock.New(m, dir)
	if err != nil {
		return nil, err
	}
	owner := queue.WithOwner(ctx)
	if err := rw.Lock(owner); err != nil {
		return nil, err
	}
	s, err := m.Session(ctx)
	if err != nil {
		return nil, errors.Join(err, rw.Unlock())
	}
	d := &downgraded{rw: rw}
	return &hold{
		held: d,
		again: func(context.Context) error { // takes the read lock and gives up the write lock
			if err := rw.RLock(owner); err != nil {
				return err
			}
			d.reads = true
			return rw.Unlock()
		},
		owned: func() (string, string, *session.Session) {
			if d.reads {
				return dir, queue.PrefixRead, s
			}
			return dir, queue.PrefixWrite, s
		},
	}, nil
}

func (d *downgraded) Done() <-chan struct{} { return nil }

func (d *downgraded) Err() error {
	if d.rw.Reader().Held() || d.rw.Held() {
		return nil
	}
	return session.ErrLost
}

// Release unlocks. That says no more than that the release is under way, unless the lock was lost.
func (d *downgraded) Release(context.Context) error {
	unlock := d.rw.Unlock
	if d.reads {
		unlock = d.rw.RUnlock
	}
	if err := unlock(); err != nil {
		return err
	}
	return queue.ErrReleasePending
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

func two(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	s, err := semaphore.New(m, path, leases)
	if err != nil {
		return nil, err
	}
	return single(s.AcquireN(ctx, 2))
}

func three(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	s, err := semaphore.New(m, path, leases)
	if err != nil {
		return nil, err
	}
	return single(s.AcquireN(ctx, leases))
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

func asked(_, ahead queue.Node) int { return ahead.Weight }

func inCurators(ctx context.Context, m *session.Manager, path string) (*hold, error) {
	s, err := semaphore.New(m, path, 1, semaphore.WithCuratorLayout())
	return take(ctx, s, err)
}
