// Package certmagic has replicas share the locks of github.com/caddyserver/certmagic, beside the storage that they share.
//
// certmagic locks the name of a piece of work, such as the certificate of a domain. Its Locker cannot end the work after a
// loss: certmagic goes on with the order, and two replicas order one certificate. That costs some of the rate limit of the
// certificate authority. What does harm is that both store a key and a certificate, one file after the other: the key of
// one can be left with the certificate of the other. So [Storage] refuses to store and to delete from the loss of a lock
// to its Unlock.
//
// certmagic tries again then, for up to 30 days, and holds the one lock all that time. Before each try it calls
// RenewLockLease, where [Storage] takes a lost lock anew. The try finds the certificate of the other replica.
//
// A write is refused by the clock of the process. One that is on its way at that moment still arrives, and so does one of a
// process that stands still between the look and the write. certmagic does not say for which lock it stores, so there is
// no fencing token to give to the storage, and a loss refuses the writes under other locks of the process too.
package certmagic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Storage is a certmagic.Storage, with TryLocker and LockLeaseRenewer. It keeps nothing in ZooKeeper but the locks.
type Storage struct {
	certmagic.Storage // keeps the keys and certificates
	locks             *zklock.Keyed

	mu   sync.Mutex
	held map[string]bool // names between Lock and Unlock
}

// New returns a storage with other locks. All replicas need the same storage, and locks in the same directory.
func New(storage certmagic.Storage, locks *zklock.Keyed) *Storage {
	return &Storage{Storage: storage, locks: locks, held: make(map[string]bool)}
}

// Lock waits for the lock of a name, across all replicas.
func (s *Storage) Lock(ctx context.Context, name string) error {
	err := s.locks.Lock(ctx, name)
	if err == nil {
		s.note(name)
	}
	return err
}

// TryLock is Lock without waiting for another holder.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	ok, err := s.locks.TryLock(ctx, name)
	if ok {
		s.note(name)
	}
	return ok, err
}

// Unlock gives the lock back. It is no error that it was lost: nothing is left to release.
func (s *Storage) Unlock(_ context.Context, name string) error {
	s.mu.Lock()
	delete(s.held, name)
	s.mu.Unlock()
	err := s.locks.Unlock(name)
	if errors.Is(err, session.ErrLost) || errors.Is(err, zklock.ErrNotHeld) { // the second after a RenewLockLease that failed
		return nil
	}
	return err
}

// RenewLockLease takes the lock anew if it was lost. Otherwise there is nothing to renew.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	if s.locks.Held(name) {
		return nil
	}
	// It is counted as lost until it is held again. The caller will call Unlock, whatever this returns.
	if err := s.locks.Unlock(name); err != nil && !errors.Is(err, session.ErrLost) && !errors.Is(err, zklock.ErrNotHeld) {
		return err
	}
	return s.locks.Lock(ctx, name)
}

func (s *Storage) note(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = true
}

// Store writes, unless a lock was lost.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.Storage.Store(ctx, key, value)
}

// Delete deletes, unless a lock was lost. certmagic deletes the files of a certificate if it cannot store all of them.
func (s *Storage) Delete(ctx context.Context, key string) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.Storage.Delete(ctx, key)
}

func (s *Storage) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.held {
		if !s.locks.Held(name) { // looks at the clock
			return fmt.Errorf("the lock %q is %w", name, session.ErrLost)
		}
	}
	return nil
}
