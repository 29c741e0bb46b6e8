package semaphore_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
)

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
