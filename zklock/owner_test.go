package zklock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// An owner's n Locks are one node on the server and need n Unlocks.
func TestOwnerReenters(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	owner := zklock.WithOwner(ctx)
	inner, cancel := context.WithCancel(owner) // the owner is inherited
	defer cancel()
	must(t, mx.Lock(owner))
	must(t, mx.Lock(inner))
	if got, err := mx.TryLock(owner); !got || err != nil {
		t.Fatalf("TryLock by the owner: %v, %v", got, err)
	}
	must(t, mx.Do(inner, func(ctx context.Context) error { // which carries the owner on
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

// Who is not the owner waits: other owners, those without, those with an owner of the
// same holder's Mutex held by nobody named, and Acquire, which knows no owners.
func TestOthersWaitForOwner(t *testing.T) {
	ctx := patient(t)
	owner := zklock.WithOwner(ctx)
	lock := func(ctx context.Context, mx *zklock.Mutex) error { return mx.Lock(ctx) }
	tests := []struct {
		name          string
		holder, other context.Context
		get           func(context.Context, *zklock.Mutex) error
	}{
		{"another owner", owner, zklock.WithOwner(ctx), lock},
		{"an owner made from the holder's", owner, zklock.WithOwner(owner), lock},
		{"no owner", owner, ctx, lock},
		{"an owner, and the holder has none", ctx, owner, lock},
		{"no owner, nor has the holder", ctx, ctx, lock},
		{"Acquire by the owner", owner, owner, func(ctx context.Context, mx *zklock.Mutex) error {
			l, err := mx.Acquire(ctx)
			if err != nil {
				return err
			}
			return errors.Join(l.Release(ctx), mx.Lock(ctx)) // to have something to unlock
		}},
	}
	m := connect(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := testserver.Path(t)
			mx := newMutex(t, m, dir)
			must(t, mx.Lock(tt.holder))
			entered := background(func() error { return tt.get(tt.other, mx) })
			testserver.WaitChildren(t, dir, 2) // it stands in the queue behind the holder
			pending(t, "Lock of the other", entered)
			must(t, mx.Unlock())
			must(t, receive(t, "Lock of the other", entered))
			must(t, mx.Unlock())
			wantErr(t, "one Unlock more", mx.Unlock(), zklock.ErrNotHeld)
		})
	}
}

// An owner is one of its Mutex: the same one does not enter another lock's hold.
func TestOwnerOfAnotherMutex(t *testing.T) {
	owner := zklock.WithOwner(patient(t))
	dir := testserver.Path(t)
	m := connect(t)
	first, second := newMutex(t, m, dir), newMutex(t, m, dir)
	must(t, first.Lock(owner))
	if got, err := second.TryLock(owner); got || err != nil {
		t.Errorf("TryLock through a second Mutex: %v, %v", got, err)
	}
	must(t, first.Unlock())
}

// Re-entering a lost lock fails, until the last Unlock; then the owner can begin anew.
func TestOwnerOfLostLock(t *testing.T) {
	ctx := patient(t)
	owner := zklock.WithOwner(ctx)
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

// A ctx that has ended enters nothing, though the owner could.
func TestOwnerCancelled(t *testing.T) {
	owner := zklock.WithOwner(patient(t))
	mx := newMutex(t, connect(t), testserver.Path(t))
	must(t, mx.Lock(owner))
	ended, cancel := context.WithCancel(owner)
	cancel()
	wantErr(t, "Lock", mx.Lock(ended), context.Canceled)
	must(t, mx.Unlock())
	wantErr(t, "second Unlock", mx.Unlock(), zklock.ErrNotHeld)
}
