package semaphore_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zktest"
)

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	s, err := semaphore.New(testserver.Connect(t, zktest.Start(t).Addr()), dir, 1)
	expect.NoError(t, err)
	misusetest.Check(t, misusetest.Package{
		Name:    "semaphore",
		Objects: []misusetest.Object{{Zero: &semaphore.Semaphore{}, Made: s}},
	})
	expect.NoError(t, s.Lock(t.Context()))
	expect.NoError(t, s.Unlock())
}
