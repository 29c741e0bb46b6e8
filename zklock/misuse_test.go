package zklock_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zklock"
)

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	m := connect(t)
	mx := newMutex(t, m, testserver.Path(t))
	multi, err := zklock.Multi(newMutex(t, m, testserver.Path(t)+"/multi"))
	must(t, err)
	l, err := multi.Acquire(patient(t))
	must(t, err)
	misusetest.Check(t, misusetest.Package{
		Name: "zklock",
		Objects: []misusetest.Object{
			{Zero: &zklock.Mutex{}, Made: mx},
			{Zero: &zklock.MultiLock{}, Made: multi},
			{Zero: &zklock.Keyed{}, Made: newKeyed(t, m, testserver.Path(t))},
			{Zero: &zklock.MultiLease{}, Made: l},
		},
		Funcs: map[string]func(context.Context){
			"Revoke":         func(ctx context.Context) { _ = zklock.Revoke(ctx, m, l.Leases()[0].Path()) },
			"MultiLeaseFrom": func(ctx context.Context) { zklock.MultiLeaseFrom(ctx) },
		},
	})
	must(t, l.Err())
	must(t, l.Release(patient(t)))
	must(t, mx.Lock(patient(t)))
	must(t, mx.Unlock())
	// Code that unlocks any type of lock can compare with the ErrNotHeld of any package.
	wantErr(t, "rwlock.ErrNotHeld", rwlock.ErrNotHeld, zklock.ErrNotHeld)
	wantErr(t, "semaphore.ErrNotHeld", semaphore.ErrNotHeld, zklock.ErrNotHeld)
}
