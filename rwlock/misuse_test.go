package rwlock_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
)

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	rw := newLock(t, connect(t), testserver.Path(t))
	misusetest.Check(t, misusetest.Package{
		Name: "rwlock",
		Objects: []misusetest.Object{
			{Zero: &rwlock.RWMutex{}, Made: rw},
			{Zero: &rwlock.Keyed{}, Made: newKeyed(t, connect(t), testserver.Path(t))},
		},
		Values: []any{rwlock.Reader{}, rw.Reader()},
	})
	wantErr(t, "Do of nil", rw.Do(patient(t), nil), session.ErrInvalid)
	wantErr(t, "Reader.Do of nil", rw.Reader().Do(patient(t), nil), session.ErrInvalid)
	if rw.Held() {
		t.Error("held by a call that could not be done")
	}
}

// The methods of the zero Reader return errors.
func TestZeroReader(t *testing.T) {
	ctx := patient(t)
	var r rwlock.Reader
	wantErr(t, "Lock", r.Lock(ctx), session.ErrInvalid)
	_, err := r.TryLock(ctx)
	wantErr(t, "TryLock", err, session.ErrInvalid)
	wantErr(t, "Unlock", r.Unlock(), session.ErrInvalid)
	_, err = r.Acquire(ctx)
	wantErr(t, "Acquire", err, session.ErrInvalid)
	_, err = r.TryAcquire(ctx)
	wantErr(t, "TryAcquire", err, session.ErrInvalid)
	wantErr(t, "Do", r.Do(ctx, func(context.Context) error { return nil }), session.ErrInvalid)
	if r.Held() || r.Path() != "" || r.FullName() != "" {
		t.Errorf("held %v, path %q, name %q", r.Held(), r.Path(), r.FullName())
	}
}
