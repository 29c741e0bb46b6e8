package zklock_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
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
}

// Other misuse is an error.
func TestMisuseErrors(t *testing.T) {
	mx := newMutex(t, connect(t), testserver.Path(t))
	multi, err := zklock.Multi(mx)
	must(t, err)
	wantErr(t, "Do of nil", mx.Do(patient(t), nil), session.ErrInvalid)
	wantErr(t, "Do of nil", multi.Do(patient(t), nil), session.ErrInvalid)
	if mx.Held() || multi.Held() {
		t.Error("held after a Do that was refused")
	}
	for _, none := range []zklock.ContextLocker{nil, (*zklock.Mutex)(nil), rwlock.Reader{}} {
		_, err = zklock.Multi(mx, none)
		wantErr(t, "Multi", err, session.ErrInvalid)
	}
	if _, err := mx.TryAcquire(patient(t)); err != nil {
		t.Errorf("TryAcquire after misuse: %v", err)
	}
	_, err = mx.TryAcquire(patient(t))
	wantErr(t, "TryAcquire of a held one", err, queue.ErrBusy)
}
