package cost

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const lockPath = "/locks/one"

// mostSessions bounds the number of sessions, because each costs this process memory. If there are
// more takers, they share the sessions in turn, so that neighbours in the queue are of different
// sessions.
const mostSessions = 100

func sessionsFor(takers int) int { return min(takers, mostSessions) }

// acquirer has the methods of all locks of this module.
type acquirer interface {
	Acquire(context.Context) (*queue.Lease, error)
}

func take(l acquirer) taker { return takeBy(l.Acquire) }

func takeBy(acquire func(context.Context) (*queue.Lease, error)) taker {
	return func(ctx context.Context) (func() error, error) {
		lease, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return func() error { return lease.Release(ctx) }, nil
	}
}

// team makes takers over some sessions, each with a lock of its own from makes.
func (w *world) team(n int, lockFor func(*session.Manager) (taker, error)) []taker {
	w.t.Helper()
	managers := w.managers(sessionsFor(n), longTimeout)
	takers := make([]taker, n)
	for i := range takers {
		var err error
		if takers[i], err = lockFor(managers[i%len(managers)]); err != nil {
			w.t.Fatal(err)
		}
	}
	return takers
}

func (w *world) mutexes(n int) []taker {
	return w.team(n, func(m *session.Manager) (taker, error) {
		l, err := zklock.New(m, lockPath)
		return take(l), err
	})
}

// permits is the limit of the semaphore.
const permits = 5

func (w *world) semaphores(n int) []taker {
	return w.team(n, func(m *session.Manager) (taker, error) {
		l, err := semaphore.New(m, lockPath, permits)
		return take(l), err
	})
}

func (w *world) readers(n int) []taker {
	return w.team(n, func(m *session.Manager) (taker, error) {
		l, err := rwlock.New(m, lockPath)
		return takeBy(l.Reader().Acquire), err
	})
}

// zkLocks are takers with go-zookeeper's lock.
func (w *world) zkLocks(n int) []taker {
	conns := w.conns(sessionsFor(n), longTimeout)
	takers := make([]taker, n)
	for i := range takers {
		l := zk.NewLock(conns[i%len(conns)], lockPath, zk.WorldACL(zk.PermAll))
		takers[i] = func(context.Context) (func() error, error) { return l.Unlock, l.Lock() }
	}
	return takers
}

// handovers is how often a shared mutex is passed on before others have their turn.
const handovers = 100

// sharersFor returns how many processes there are whose goroutines share a mutex: two, if there are at
// least two goroutines.
func sharersFor(takers int) int { return min(takers, 2) }

func (w *world) shared(n int) []taker {
	w.t.Helper()
	managers := w.managers(sharersFor(n), longTimeout)
	mutexes := make([]*zklock.Mutex, len(managers))
	for i, m := range managers {
		var err error
		if mutexes[i], err = zklock.New(m, lockPath, zklock.WithLocalHandover(handovers)); err != nil {
			w.t.Fatal(err)
		}
	}
	takers := make([]taker, n)
	for i := range takers {
		takers[i] = take(mutexes[i%len(mutexes)])
	}
	return takers
}
