// Package vault elects the active node of HashiCorp Vault: it is the part for high availability of a storage backend,
// physical.HABackend of github.com/hashicorp/vault/sdk.
//
// The interface carries a loss: the channel that Lock returns is closed, and Vault then seals itself off and campaigns
// again. It cannot make sure that Vault has stopped by then. A write that is on its way can reach the storage while
// another node is active. A token against that is for backends that store the data too, physical.FencingHABackend: Vault
// hands them the lock by RegisterActiveNodeLock, and they check it with each write (queue.Lease.Guard, or package fence).
// This backend stores nothing, so it cannot be one. Combine it with a storage that refuses late writes by itself, or
// leave more room for them: the option session.WithMargin makes the channel close earlier.
package vault

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/hashicorp/vault/sdk/physical"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// patience bounds calls of ZooKeeper for which Vault gives no bound.
const patience = 10 * time.Second

// longest is how much of a label a node has.
const longest = 256

// Backend is a physical.HABackend.
type Backend struct {
	m   *session.Manager
	dir string
}

// New returns a backend with its locks below dir.
func New(m *session.Manager, dir string) *Backend { return &Backend{m, dir} }

// HAEnabled reports true.
func (b *Backend) HAEnabled() bool { return true }

// LockWith returns the lock of a key. While it is held, all nodes can read the value, by which Vault finds the active
// node. It is the label of the contender.
func (b *Backend) LockWith(key, value string) (physical.Lock, error) {
	if len(value) > longest {
		return nil, fmt.Errorf("a value of %d bytes is too long", len(value))
	}
	mutex, err := zklock.New(b.m, path.Join(b.dir, zklock.EscapePath(key)))
	if err != nil {
		return nil, err
	}
	return &lock{mutex: mutex, value: value}, nil
}

type lock struct {
	mutex *zklock.Mutex
	value string

	mu    sync.Mutex
	lease *queue.Lease // held or lost, until Unlock
}

// Lock waits for the lock. The channel is closed when it is lost or unlocked. If stop is closed first, Lock returns nil
// and nil, as Vault expects.
func (l *lock) Lock(stop <-chan struct{}) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil {
		return nil, errors.New("lock is held already")
	}
	ctx, cancel := context.WithCancel(queue.WithLabel(context.Background(), l.value))
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	lease, err := l.mutex.Acquire(ctx)
	if errors.Is(err, context.Canceled) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l.lease = lease
	return lease.Done(), nil
}

// Unlock gives the lock back. That it was lost is no error.
func (l *lock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := l.lease.Release(ctx)
	l.lease = nil
	if errors.Is(err, session.ErrLost) || errors.Is(err, queue.ErrReleasePending) { // the delete is certain
		return nil
	}
	return err
}

// Value returns the value of the node that holds the lock.
func (l *lock) Value() (held bool, value string, err error) {
	holder, err := l.mutex.Holder(queue.WithMaxWait(context.Background(), patience))
	return holder.Holder, holder.Label, err
}
