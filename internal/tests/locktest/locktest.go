// Package locktest is one table of cases for all locks of this module, as golang.org/x/net/nettest is one for
// connections and testing/fstest for file systems. [Run] tests one kind of lock, which a [Subject] describes, through
// what its package exports. So a promise that all locks make is tested once, for each of them:
//
//	locktest.Run(t, locktest.Subject{Name: "mutex", Holders: 1, New: newMutex})
//
// Each case runs in a bubble of [testing/synctest] with a server of package zktest: no time passes but where a case
// lets it pass. One runs on the shared server of package testserver, which is a real one if there is one. At the end
// of a bubble no goroutine is left. The cases that walk through the requests of a call meet each of them with a
// fault, the first one first, until the calls meet none.
package locktest

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/session"
)

// A Subject is one kind of lock with certain options.
type Subject struct {
	Name string

	// New makes a lock at a path. Locks of two managers are those of two processes.
	New func(m *session.Manager, path string) (Lock, error)
	// Rival makes a lock that excludes every holder of the subject, and is excluded by each. It is nil if New does.
	Rival func(m *session.Manager, path string) (Lock, error)

	Holders   int   // how many hold at a time; 0 for any number
	Nodes     int   // how many nodes, locks and hooks a hold has; 0 for one
	Reentrant bool  // Lock of an owner that holds adds one to the hold count
	Slot      bool  // an object has one hold by Lock at a time
	Asked     error // the cause of the end of a Do when another client asks for the lock

	Async bool // Unlock does not wait for the answer

	// Turn is which call meets the first request of a walk.
	Turn int
	// Shared says that the subject stands for its kind on the shared server, which does not see most options.
	Shared bool

	// SharesPlace says that goroutines of one object have one node.
	SharesPlace bool
	// KeepsPlace says that a place can stay after the release, for at most [KeptFor].
	KeepsPlace bool
	// Gate says that each call takes another lock first, and gives it up behind the grant. Hooks are told of both. A lease
	// that is lost meanwhile is returned.
	Gate bool
	// Campaigns says that queue.WithMaxWait does not bound the call, and that a request to leave does not end a wait.
	Campaigns bool

	calls []call
}

// A Lock is what a case calls. A function that the kind of lock does not have is nil, and the cases that need it do
// without.
type Lock struct {
	Lock    func(context.Context) error
	TryLock func(context.Context) (bool, error)
	Unlock  func() error
	Held    func() bool
	Done    func() <-chan struct{}

	Do    func(context.Context, func(context.Context) error) error
	TryDo func(context.Context, func(context.Context) error) (bool, error)

	Acquire    func(context.Context) (Lease, error)
	TryAcquire func(context.Context) (Lease, error)
}

// A Lease is one hold of a lock.
type Lease interface {
	Done() <-chan struct{}
	Err() error
	Revoked() <-chan struct{}
	Context(parent context.Context) (context.Context, context.CancelFunc)
	Release(ctx context.Context) error
}

// Leases turns a method that returns a lease of some type into a function of a [Lock].
func Leases[L Lease](acquire func(context.Context) (L, error)) func(context.Context) (Lease, error) {
	return func(ctx context.Context) (Lease, error) {
		l, err := acquire(ctx)
		if err != nil {
			return nil, err // and no Lease that is not nil and has a nil pointer
		}
		return l, nil
	}
}

// A testCase is one promise that all locks make.
type testCase struct {
	name  string
	needs func(Subject, Lock) bool // nil if every lock can do it
	run   func(*testing.T, Subject)
}

// Run runs all cases that the subject has the functions for.
func Run(t *testing.T, s Subject) {
	t.Helper()
	s.Nodes = max(s.Nodes, 1)
	if s.Rival == nil {
		s.Rival = s.New
	}
	var has Lock // the server of these functions is gone
	inWorld(t, s, func(w *world) { has = w.object(w.dial()).lock })
	for i, w := range (&process{lock: has}).ways() {
		s.calls = append(s.calls, call{w.name, w.try, i})
	}
	t.Run(s.Name, func(t *testing.T) {
		t.Parallel()
		for _, c := range cases() {
			if c.needs == nil || c.needs(s, has) {
				t.Run(c.name, func(t *testing.T) { c.run(t, s) })
			}
		}
	})
}
