package placemodel

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The kinds of lock, as the lock packages have them.

// Sorts of nodes.
const (
	sortLock int8 = iota
	sortWrite
	sortRead
	sortLease
	sortLease2 // asks for two leases
)

// limitsSet are the limits that an operator sets, one after the other. A world begins with the first.
var limitsSet = []int{2, 1, 2}

// library is what worlds take of the lock packages.
type library struct {
	sorts   []sort
	configs []kinds.Config // of a directory whose limit is one of limitsSet after the other
}

// libraryOf makes a lock of each kind, and takes what it has. Resize writes the configurations on a server.
func libraryOf(t *testing.T) library {
	m, err := session.Open(zktest.Start(t).ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	fair, err := zklock.New(m, "/fair")
	fairKind := kindOf(t, fair, err)
	rw, err := rwlock.New(m, "/rw")
	writing, reading := kindOf(t, rw, err), kindOf(t, rw.Reader(), nil)
	sem, err := semaphore.New(m, "/sem", limitsSet[0])
	leasing := kindOf(t, sem, err)
	return library{
		sorts: []sort{
			sortLock:   {kind: fairKind, prefix: kinds.PrefixLock, weight: 1, word: "lock"},
			sortWrite:  {kind: writing, prefix: kinds.PrefixWrite, weight: 1, word: "write"},
			sortRead:   {kind: reading, prefix: kinds.PrefixRead, weight: 1, word: "read", shared: true},
			sortLease:  {kind: leasing, prefix: kinds.PrefixLease, weight: 1, word: "lease"},
			sortLease2: {kind: leasing, prefix: kinds.PrefixLease, weight: 2, word: "two-leases"},
		},
		configs: configsOf(t, m, sem),
	}
}

// kindOf returns the kind of a public lock.
func kindOf(t *testing.T, lock any, err error) *kinds.Kind {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return hold.LockOf(lock).Request.Kind
}

// configsOf has the limits set, one after the other, and returns the configurations. Between two of them lie
// transactions, so that nodes can be older or younger than each of them.
func configsOf(t *testing.T, m *session.Manager, sem *semaphore.Semaphore) (all []kinds.Config) {
	t.Helper()
	other, err := zklock.New(m, "/other")
	if err != nil {
		t.Fatal(err)
	}
	if err := sem.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, limit := range limitsSet {
		if i > 0 {
			if err := sem.Resize(t.Context(), limit); err != nil {
				t.Fatal(err)
			}
		}
		c, err := hold.LockOf(sem).Queue.ReadConfig(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		for range 2 {
			if err := other.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := sem.Unlock(); err != nil {
		t.Fatal(err)
	}
	return all
}
