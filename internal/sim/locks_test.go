package sim

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// leaser is what a worker needs of a lock, in one of its modes.
type leaser interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

// locker is a leaser that can also be held without a handle.
type locker interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) (bool, error)
	Unlock() error
	Held() bool
}

// kind is a type of lock, and what is to be expected of it: said again here, in other
// words than the library's.
type kind struct {
	name string
	// modes are the ways to hold it; each call has one of them.
	modes []string
	// modeOf tells a contender's mode.
	modeOf func(n queue.Node) string
	// open makes the lock at a path, as a leaser, a locker or both, for each mode.
	open func(m *session.Manager, path string) (map[string]any, error)
	// together reports whether it may be held in all of these ways at once.
	together func(all []inside) bool
	// weight is what one ahead means to one in mode me, and slack what he can bear.
	weight func(ahead, me string) int
	slack  func(me string) int
	// whole reports whether with a grant to this node the lock is held, and not only a part
	// of what leads to it; nil: always.
	whole func(n queue.Node) bool
	// unordered says that nobody has a place in a queue, as there is none, or several.
	unordered bool
	// sameName says that all nodes of a directory have one name.
	sameName bool
	// shared says that workers of a manager may use one lock object: it can tell whose a
	// hold is.
	shared bool
	// handovers is how often, at most, workers of a manager hand on a node that is held: they
	// have one lock object then, and one node at a time. 0: each worker has its own node.
	handovers int
	// reentrant says that WithOwner of zklock works on it.
	reentrant bool
	// also is what else an owner may do with what he holds; it reports whether he has given
	// it back.
	also func(k *worker, c *call, h *holding) bool
}

// busy reports whether others of some weight are a reason for a try to fail.
func (k kind) busy(weight int, mode string) bool {
	return weight > k.slack(mode) || k.unordered && weight > 0
}

// inside is one who holds a lock.
type inside struct {
	mode string
	who  *worker
}

var kinds = []kind{mutexKind, rwlockKind, semaphoreKind, curatorKind, multiKind, unfairKind, localKind}

var mutexKind = kind{
	name:   "mutex",
	modes:  []string{"lock"},
	modeOf: func(queue.Node) string { return "lock" },
	open: func(m *session.Manager, path string) (map[string]any, error) {
		mx, err := zklock.New(m, path)
		return map[string]any{"lock": mx}, err
	},
	together:  func(all []inside) bool { return len(all) <= 1 },
	weight:    func(string, string) int { return 1 },
	slack:     func(string) int { return 0 },
	shared:    true,
	reentrant: true,
}
