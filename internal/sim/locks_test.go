package sim

import (
	"context"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// locker is what a worker needs of a lock, in one of its modes.
type locker interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) (bool, error)
	Unlock() error
	Held() bool
	Acquire(ctx context.Context) (*queue.Lease, error)
}

// kind is a type of lock.
type kind struct {
	name string
	// modes are the ways to hold it; each worker has one of them.
	modes []string
	// open makes the lock at a path; it is called once for all who share a lock object.
	open func(m *session.Manager, path string) (map[string]locker, error)
	// together reports whether it may be held in all of these modes at once.
	together func(modes []string) bool
	// ordered reports whether of two contenders in these modes the earlier is granted
	// first, unless it has left.
	ordered func(earlier, later string) bool
	// reentrant says that WithOwner of zklock works on it.
	reentrant bool
}

var kinds = []kind{
	{
		name:  "mutex",
		modes: []string{"lock"},
		open: func(m *session.Manager, path string) (map[string]locker, error) {
			mx, err := zklock.New(m, path)
			return map[string]locker{"lock": mx}, err
		},
		together:  func(modes []string) bool { return len(modes) <= 1 },
		ordered:   func(string, string) bool { return true },
		reentrant: true,
	},
}
