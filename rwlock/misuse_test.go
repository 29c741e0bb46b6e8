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
		Values: []any{rw.Reader()},
	})
	wantErr(t, "Do of nil", rw.Do(patient(t), nil), session.ErrInvalid)
	wantErr(t, "Reader.Do of nil", rw.Reader().Do(patient(t), nil), session.ErrInvalid)
	if rw.Held() {
		t.Error("held by a call that could not be done")
	}
}

// The methods of the zero Reader panic.
func TestZeroReader(t *testing.T) {
	ctx := patient(t)
	var r rwlock.Reader
	for what, call := range map[string]func(){
		"Lock":     func() { _ = r.Lock(ctx) },
		"TryLock":  func() { _, _ = r.TryLock(ctx) },
		"Unlock":   func() { _ = r.Unlock() },
		"Acquire":  func() { _, _ = r.Acquire(ctx) },
		"Do":       func() { _ = r.Do(ctx, func(context.Context) error { return nil }) },
		"Held":     func() { r.Held() },
		"Done":     func() { r.Done() },
		"Path":     func() { _ = r.Path() },
		"Contends": func() { _, _ = r.Contenders(ctx) },
	} {
		func() {
			defer func() {
				if got := recover(); got != "rwlock: Reader not made by RWMutex.Reader" {
					t.Errorf("%s: panic %v", what, got)
				}
			}()
			call()
		}()
	}
}
