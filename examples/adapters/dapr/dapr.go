// Package dapr is a lock store for Dapr, lock.Store of github.com/dapr/components-contrib: the sidecar of an application
// holds the locks of the application.
//
// The interface cannot carry a loss. An application has asked its sidecar once, and nothing tells it that the lock is gone:
// it learns of that from Unlock, which says LockDoesNotExist or LockBelongsToOthers then, when the work is done. There is no
// fencing token in a response either. So use these locks where two at work cost time and do no harm, or make the store
// that the application writes to refuse the second one by other means.
//
// It is the same with the expiry that each request has: the sidecar gives the lock up then, whether the application is at
// work or not. In exchange the lock of an application that hangs is free some time. The lock of a sidecar that has died is
// free after the session timeout, even if the expiry is later.
//
// Only the sidecar that has taken a lock can give it back. Unlock by another one says LockBelongsToOthers, also for the
// same owner.
package dapr

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Store is a lock.Store.
type Store struct {
	m     *session.Manager
	locks *zklock.Keyed

	mu   sync.Mutex
	held map[string]hold
}

// hold is a lock that this sidecar has taken, and may have lost.
type hold struct {
	owner  string
	lease  *queue.Lease
	expiry *time.Timer
}

// New returns a store of the sidecar with a manager.
func New(m *session.Manager) *Store { return &Store{m: m, held: make(map[string]hold)} }

// InitLockStore reads the property dir, a directory for the locks.
func (s *Store) InitLockStore(_ context.Context, metadata Metadata) (err error) {
	s.locks, err = zklock.NewKeyed(s.m, metadata.Properties["dir"])
	return err
}

// Close closes the manager, which gives all locks up.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		h.expiry.Stop()
	}
	return s.m.Close()
}

// TryLock takes a lock if it is free. The owner of a lock that is held does not enter it again.
func (s *Store) TryLock(ctx context.Context, req *TryLockRequest) (*TryLockResponse, error) {
	lease, err := s.locks.TryAcquire(queue.WithLabel(ctx, req.LockOwner), req.ResourceID)
	if errors.Is(err, queue.ErrBusy) {
		return &TryLockResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	expiry := time.AfterFunc(time.Duration(req.ExpiryInSeconds)*time.Second, func() {
		_ = lease.Release(context.Background()) // or it was lost, or unlocked
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.held[req.ResourceID]; ok { // lost or expired, or this lock would be busy
		before.expiry.Stop()
	}
	s.held[req.ResourceID] = hold{req.LockOwner, lease, expiry}
	return &TryLockResponse{Success: true}, nil
}

// Unlock gives a lock back.
func (s *Store) Unlock(ctx context.Context, req *UnlockRequest) (*UnlockResponse, error) {
	s.mu.Lock()
	h, ok := s.held[req.ResourceID]
	ok = ok && h.owner == req.LockOwner
	if ok {
		delete(s.held, req.ResourceID)
	}
	s.mu.Unlock()
	if ok && h.expiry.Stop() {
		if err := h.lease.Release(ctx); err == nil || errors.Is(err, queue.ErrReleasePending) { // the delete is certain
			return &UnlockResponse{Status: Success}, nil
		}
	}
	// It was lost, has expired, or is the lock of another owner or sidecar.
	holder, err := s.locks.Holder(ctx, req.ResourceID)
	if err != nil {
		return &UnlockResponse{Status: InternalError}, err
	}
	if holder.Holder {
		return &UnlockResponse{Status: LockBelongsToOthers}, nil
	}
	return &UnlockResponse{Status: LockDoesNotExist}, nil
}
