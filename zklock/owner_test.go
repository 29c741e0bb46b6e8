package zklock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// n Locks of an owner have one node on the server, and need n Unlocks.
func TestOwnerReenters(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	owner := queue.WithOwner(ctx)
	inner, cancel := context.WithCancel(owner) // the owner is inherited
	defer cancel()
	must(t, mx.Lock(owner))
	must(t, mx.Lock(inner))
	if got, err := mx.TryLock(owner); !got || err != nil {
		t.Fatalf("TryLock by the owner: %v, %v", got, err)
	}
	must(t, mx.Do(inner, func(ctx context.Context) error { // its context has the owner
		return mx.Do(ctx, func(ctx context.Context) error {
			if n := len(testserver.Children(t, dir)); n != 1 {
				t.Errorf("%d nodes for one owner", n)
			}
			return ctx.Err()
		})
	}))
	rival := newMutex(t, connect(t), dir)
	for i := range 3 {
		if !mx.Held() {
			t.Errorf("not held after %d of 3 Unlocks", i)
		}
		if got, err := rival.TryLock(ctx); got || err != nil {
			t.Errorf("TryLock of another after %d of 3 Unlocks: %v, %v", i, got, err)
		}
		must(t, mx.Unlock())
	}
	if mx.Held() || len(testserver.Children(t, dir)) != 0 {
		t.Error("held after as many Unlocks as Locks")
	}
	wantErr(t, "one Unlock more", mx.Unlock(), zklock.ErrNotHeld)
}

// Other callers wait: other owners, also one whose context is derived from the holder's, calls without an owner,
// an owner while a call without one holds the Mutex, and Acquire, which does not look at owners.
func TestOthersWaitForOwner(t *testing.T) {
	ctx := patient(t)
	owner := queue.WithOwner(ctx)
	lock := func(ctx context.Context, mx *zklock.Mutex) error { return mx.Lock(ctx) }
	tests := []struct {
		name          string
		holder, other context.Context
		get           func(context.Context, *zklock.Mutex) error
	}{
		{"another owner", owner, queue.WithOwner(ctx), lock},
		{"an owner made from the holder's", owner, queue.WithOwner(owner), lock},
		{"no owner", owner, ctx, lock},
		{"an owner, and the holder has none", ctx, owner, lock},
		{"no owner, nor has the holder", ctx, ctx, lock},
		{"Acquire by the owner", owner, owner, func(ctx context.Context, mx *zklock.Mutex) error {
			l, err := mx.Acquire(ctx)
			if err != nil {
				return err
			}
			return errors.Join(l.Release(ctx), mx.Lock(ctx)) // so that there is a Lock to give back
		}},
	}
	m := connect(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := testserver.Path(t)
			mx := newMutex(t, m, dir)
			must(t, mx.Lock(tt.holder))
			entered := background(func() error { return tt.get(tt.other, mx) })
			testserver.WaitChildren(t, dir, 2) // it waits in the queue behind the holder
			pending(t, "Lock of the other", entered)
			must(t, mx.Unlock())
			must(t, receive(t, "Lock of the other", entered))
			must(t, mx.Unlock())
			wantErr(t, "one Unlock more", mx.Unlock(), zklock.ErrNotHeld)
		})
	}
}

// An owner that holds one Mutex does not enter the hold of another lock.
func TestOwnerOfAnotherMutex(t *testing.T) {
	owner := queue.WithOwner(patient(t))
	dir := testserver.Path(t)
	m := connect(t)
	first, second := newMutex(t, m, dir), newMutex(t, m, dir)
	must(t, first.Lock(owner))
	if got, err := second.TryLock(owner); got || err != nil {
		t.Errorf("TryLock through a second Mutex: %v, %v", got, err)
	}
	must(t, first.Unlock())
}

// Entering a lost lock again fails until the last Unlock. Then the owner can lock again.
func TestOwnerOfLostLock(t *testing.T) {
	ctx := patient(t)
	owner := queue.WithOwner(ctx)
	proxy := testserver.Proxy(t)
	dir := testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr())
	mx := newMutex(t, m, dir)
	must(t, mx.Lock(owner))
	must(t, mx.Lock(owner))
	expire(t, proxy, m)
	waitLost(t, mx)
	wantErr(t, "Lock", mx.Lock(owner), session.ErrLost)
	got, err := mx.TryLock(owner)
	wantErr(t, "TryLock", err, session.ErrLost)
	err = mx.Do(owner, func(context.Context) error {
		t.Error("Do of a lost lock has called its function")
		return nil
	})
	wantErr(t, "Do", err, session.ErrLost)
	if got || mx.Held() {
		t.Error("held after the loss")
	}
	wantErr(t, "first Unlock", mx.Unlock(), session.ErrLost)
	wantErr(t, "Lock between the Unlocks", mx.Lock(owner), session.ErrLost)
	wantErr(t, "second Unlock", mx.Unlock(), session.ErrLost)
	wantErr(t, "third Unlock", mx.Unlock(), zklock.ErrNotHeld)
	must(t, mx.Lock(owner))
	must(t, mx.Unlock())
	testserver.WaitChildren(t, dir, 0)
}

// A call with an ended context does not enter, even for the owner.
func TestOwnerCancelled(t *testing.T) {
	owner := queue.WithOwner(patient(t))
	mx := newMutex(t, connect(t), testserver.Path(t))
	must(t, mx.Lock(owner))
	ended, cancel := context.WithCancel(owner)
	cancel()
	wantErr(t, "Lock", mx.Lock(ended), context.Canceled)
	must(t, mx.Unlock())
	wantErr(t, "second Unlock", mx.Unlock(), zklock.ErrNotHeld)
}
