package semaphore_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zklock"
)

// Each Lock takes a lease, also for one owner, and each Unlock gives one back.
func TestLockUnlock(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			ctx := queue.WithOwner(patient(t))
			s := newSem(t, connect(t), testserver.Path(t), 2, layout.opts...)
			wantErr(t, "Unlock of nothing", s.Unlock(), semaphore.ErrNotHeld)
			must(t, s.Lock(ctx))
			got, err := s.TryLock(ctx)
			if !got || err != nil {
				t.Fatal(got, err)
			}
			testserver.WaitChildren(t, s.Path()+layout.leases, 2)
			if got, err := s.TryLock(ctx); got || err != nil {
				t.Errorf("a third of two: %v, %v", got, err)
			}
			for _, left := range []int{1, 0} {
				if !s.Held() {
					t.Error("not held")
				}
				must(t, s.Unlock())
				if n := len(testserver.Children(t, s.Path()+layout.leases)); n != left {
					t.Errorf("%d nodes, want %d", n, left)
				}
			}
			if s.Held() {
				t.Error("held")
			}
			for range 2 {
				wantErr(t, "Unlock once too often", s.Unlock(), semaphore.ErrNotHeld, zklock.ErrNotHeld)
			}
		})
	}
}

// Unlock does not release a lease of Acquire.
func TestUnlockLeavesHandles(t *testing.T) {
	s := newSem(t, connect(t), testserver.Path(t), 2)
	l := take(t, s, 1)
	wantErr(t, "Unlock", s.Unlock(), semaphore.ErrNotHeld)
	must(t, s.Lock(patient(t)))
	must(t, s.Unlock())
	must(t, l.Err())
	release(t, l)
}
