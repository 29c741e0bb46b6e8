package dapr_test

import (
	"context"
	"io"
	"testing"

	"github.com/turnstile-go/turnstile/examples/adapters/dapr"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

// store is lock.Store of Dapr.
type store interface {
	InitLockStore(ctx context.Context, metadata dapr.Metadata) error
	TryLock(ctx context.Context, req *dapr.TryLockRequest) (*dapr.TryLockResponse, error)
	Unlock(ctx context.Context, req *dapr.UnlockRequest) (*dapr.UnlockResponse, error)
	io.Closer
}

// sidecar starts a sidecar.
func sidecar(t *testing.T, p *ensemble.Process) store {
	t.Helper()
	s := dapr.New(p.Manager)
	ensemble.OK(t, s.InitLockStore(t.Context(), dapr.Metadata{Properties: map[string]string{"dir": "/dapr/" + t.Name()}}))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func try(t *testing.T, s store, resource, owner string, expiry int32) bool {
	t.Helper()
	r, err := s.TryLock(t.Context(), &dapr.TryLockRequest{ResourceID: resource, LockOwner: owner, ExpiryInSeconds: expiry})
	ensemble.OK(t, err)
	return r.Success
}

func unlock(t *testing.T, s store, resource, owner string, want dapr.Status) {
	t.Helper()
	r, err := s.Unlock(t.Context(), &dapr.UnlockRequest{ResourceID: resource, LockOwner: owner})
	ensemble.OK(t, err)
	if r.Status != want {
		t.Errorf("Unlock of %s by %s: status %d, want %d", resource, owner, r.Status, want)
	}
}

// The cases of Dapr's conformance test for lock stores.
func TestConformance(t *testing.T) {
	s := sidecar(t, ensemble.Start(t))
	if !try(t, s, "1", "conftest", 600) || !try(t, s, "2", "conftest", 1) {
		t.Fatal("free locks are busy")
	}
	if try(t, s, "1", "conftest", 600) {
		t.Error("the owner locks again")
	}
	unlock(t, s, "nonexistent", "conftest", dapr.LockDoesNotExist)
	unlock(t, s, "1", "nonowner", dapr.LockBelongsToOthers)
	unlock(t, s, "1", "conftest", dapr.Success)
	zktest.Eventually(t, ensemble.Patience, "the second lock to expire", func() bool { return try(t, s, "2", "conftest", 600) })
	unlock(t, s, "2", "conftest", dapr.Success)
	unlock(t, s, "2", "conftest", dapr.LockDoesNotExist)
}

// After a loss another sidecar gets the lock while the first application is at work, which learns of that when it unlocks.
func TestLoss(t *testing.T) {
	process := ensemble.Start(t)
	one, two := sidecar(t, process), sidecar(t, ensemble.Start(t))
	if !try(t, one, "invoice", "one", 600) || try(t, two, "invoice", "two", 600) {
		t.Fatal("not one holder")
	}
	process.Expire(t)
	zktest.Eventually(t, ensemble.Patience, "the lock to be free", func() bool { return try(t, two, "invoice", "two", 600) })
	unlock(t, one, "invoice", "one", dapr.LockBelongsToOthers)
	unlock(t, two, "invoice", "two", dapr.Success)
	unlock(t, one, "invoice", "one", dapr.LockDoesNotExist)
}
