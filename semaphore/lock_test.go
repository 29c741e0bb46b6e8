package semaphore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
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

// Of two leases the younger is lost. The first Unlock gives it up and returns the loss. The older lease stays held.
func TestUnlockGivesUpTheLost(t *testing.T) {
	ctx := patient(t)
	lost := make(chan struct{}, 2)
	m := connect(t, session.WithTrace(session.Trace{
		Loss: func(context.Context, session.HoldInfo, error) { lost <- struct{}{} },
	}))
	s := newSem(t, m, testserver.Path(t), 2)
	must(t, s.Lock(ctx))
	must(t, s.Lock(ctx))
	all, err := s.Contenders(ctx)
	must(t, err)
	testserver.Delete(t, all[1].Path)
	receive(t, "the loss", lost)
	wantErr(t, "Unlock", s.Unlock(), session.ErrLost)
	if names := testserver.Children(t, s.Path()); len(names) != 1 || !s.Held() {
		t.Errorf("the older lease is gone: %v", names)
	}
	must(t, s.Unlock())
	wantErr(t, "Unlock once too often", s.Unlock(), semaphore.ErrNotHeld)
}

// Do holds a lease while f runs, and gives it back in whatever way f ends.
func TestDo(t *testing.T) {
	ctx := patient(t)
	s := newSem(t, connect(t), testserver.Path(t), 1)
	failed := errors.New("failed")
	err := s.Do(ctx, func(ctx context.Context) error {
		busy(t, s, 1)
		if !s.Held() || ctx.Err() != nil {
			t.Error("not held inside")
		}
		return failed
	})
	wantErr(t, "Do", err, failed)
	func() {
		defer func() { _ = recover() }()
		_ = s.Do(ctx, func(context.Context) error { panic("out") })
	}()
	release(t, take(t, s, 1))
	err = s.Do(ctx, func(inside context.Context) error {
		testserver.Delete(t, s.Path(), testserver.Children(t, s.Path())[0])
		receive(t, "the end of the lease", inside.Done())
		return context.Cause(inside)
	})
	wantErr(t, "Do of a lost lease", err, session.ErrLost)
	wantErr(t, "Unlock after Do", s.Unlock(), semaphore.ErrNotHeld)
}

// A lease that is released twice, or after its loss, frees one place and no more.
func TestFreesOnce(t *testing.T) {
	tests := []struct {
		name string
		end  func(t *testing.T, l *queue.Lease, proxy *zktest.Proxy, m *session.Manager)
		want error // of a second release
	}{
		{"released", func(t *testing.T, l *queue.Lease, _ *zktest.Proxy, _ *session.Manager) {
			release(t, l)
		}, queue.ErrReleased},
		{"node deleted", func(t *testing.T, l *queue.Lease, _ *zktest.Proxy, _ *session.Manager) {
			testserver.Delete(t, l.Path())
			receive(t, "the loss", l.Done())
		}, session.ErrLost},
		{"session expired", func(t *testing.T, l *queue.Lease, proxy *zktest.Proxy, m *session.Manager) {
			expire(t, proxy, m)
			receive(t, "the loss", l.Done())
		}, session.ErrLost},
	}
	for _, tt := range tests {
		for _, layout := range layouts {
			t.Run(tt.name+", "+layout.name, func(t *testing.T) {
				dir := testserver.Path(t)
				proxy := testserver.Proxy(t)
				m := behind(t, proxy)
				other := newSem(t, connect(t), dir, 3, layout.opts...)
				lost := take(t, newSem(t, m, dir, 3, layout.opts...), 1)
				held := []*queue.Lease{take(t, other, 1), take(t, other, 1)}
				tt.end(t, lost, proxy, m)
				held = append(held, take(t, other, 1)) // the place that is free
				for range 2 {
					wantErr(t, "Release", lost.Release(patient(t)), tt.want)
				}
				testserver.WaitChildren(t, dir+layout.leases, 3)
				busy(t, other, 1)
				for _, l := range held {
					must(t, l.Err())
				}
				release(t, held...)
				release(t, take(t, other, 1))
			})
		}
	}
}
