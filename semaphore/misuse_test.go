package semaphore_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	s := newSem(t, connect(t), testserver.Path(t), 1)
	misusetest.Check(t, misusetest.Package{
		Name:    "semaphore",
		Objects: []misusetest.Object{{Zero: &semaphore.Semaphore{}, Made: s}},
	})
	wantErr(t, "Do of nil", s.Do(patient(t), nil), session.ErrInvalid)
	must(t, s.Lock(patient(t)))
	must(t, s.Unlock())
}
