package zklock_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zklock"
)

// Code that unlocks any type of lock can compare with the ErrNotHeld of any package.
func TestErrNotHeldIsOneValue(t *testing.T) {
	wantErr(t, "rwlock.ErrNotHeld", rwlock.ErrNotHeld, zklock.ErrNotHeld)
	wantErr(t, "semaphore.ErrNotHeld", semaphore.ErrNotHeld, zklock.ErrNotHeld)
}

// Unlock without a Lock is an error, and frees no other lock.
func TestUnlockNotHeld(t *testing.T) {
	ctx := patient(t)
	tests := []struct {
		name string
		prep func(t *testing.T, mx *zklock.Mutex) // ends with the mutex not held
		left int                                  // nodes of other contenders, which must stay
	}{
		{"never locked", func(*testing.T, *zklock.Mutex) {}, 0},
		{"unlocked already", func(t *testing.T, mx *zklock.Mutex) {
			must(t, mx.Lock(ctx))
			must(t, mx.Unlock())
		}, 0},
		{"unlocked by Do", func(t *testing.T, mx *zklock.Mutex) {
			must(t, mx.Do(ctx, func(context.Context) error { return nil }))
		}, 0},
		{"held as a handle", func(t *testing.T, mx *zklock.Mutex) {
			_, err := mx.Acquire(ctx)
			must(t, err)
		}, 1},
		{"TryLock failed", func(t *testing.T, mx *zklock.Mutex) {
			_, err := mx.Acquire(ctx)
			must(t, err)
			if got, err := mx.TryLock(ctx); got || err != nil {
				t.Fatal(got, err)
			}
		}, 1},
		{"Lock was cancelled", func(t *testing.T, mx *zklock.Mutex) {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			wantErr(t, "Lock", mx.Lock(ended), context.Canceled)
		}, 0},
	}
	m := connect(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := testserver.Path(t)
			mx := newMutex(t, m, dir)
			tt.prep(t, mx)
			for range 2 {
				wantErr(t, "Unlock", mx.Unlock(), zklock.ErrNotHeld)
			}
			if mx.Held() {
				t.Error("held")
			}
			if n := len(testserver.Children(t, dir)); n != tt.left {
				t.Errorf("%d nodes, want %d", n, tt.left)
			}
		})
	}
}

// A second Unlock does not free a lock that was taken in between, through another Mutex or through Acquire of the
// same Mutex.
func TestUnlockTwiceFreesNobody(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mine, other := newMutex(t, connect(t), dir), newMutex(t, connect(t), dir)
	must(t, mine.Lock(ctx))
	must(t, mine.Unlock())
	must(t, other.Lock(ctx))
	wantErr(t, "second Unlock", mine.Unlock(), zklock.ErrNotHeld)
	if !other.Held() || len(testserver.Children(t, dir)) != 1 {
		t.Error("the other's lock is gone")
	}
	must(t, other.Unlock())
}

// Unlock returns when the server has confirmed it, so the node is gone by then. A lease is released once.
func TestReleaseIsConfirmed(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	must(t, mx.Lock(ctx))
	must(t, mx.Unlock())
	if n := len(testserver.Children(t, dir)); n != 0 {
		t.Errorf("%d nodes after Unlock", n)
	}
	l, err := mx.Acquire(ctx)
	must(t, err)
	must(t, l.Release(ctx))
	if n := len(testserver.Children(t, dir)); n != 0 {
		t.Errorf("%d nodes after Release", n)
	}
	wantErr(t, "Err", l.Err(), queue.ErrReleased)
	wantErr(t, "second Release", l.Release(ctx), queue.ErrReleased)
}
