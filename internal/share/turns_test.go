package share

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// A waiter that gives up says what it has waited for: the holder of this process, or the contender that all wait behind. That
// is so too if it may wait for a time only.
func TestWhyItWaited(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newProcess(t, dir, 1), newProcess(t, dir, 1)
	fails := func(who *process, reason string) (wait *queue.WaitError) {
		t.Helper()
		_, err := who.Acquire(queue.WithMaxWait(expect.Patient(t), 50*time.Millisecond), false)
		if !errors.Is(err, queue.ErrMaxWait) || errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &wait) {
			t.Fatal(err)
		}
		if !strings.HasPrefix(wait.Reason, reason) {
			t.Errorf("%s: want %s", wait.Reason, reason)
		}
		return wait
	}
	l := p.hold(t)
	if wait := fails(p, "held by this process for "); wait.Ahead.Path != l.Path() || !wait.Ahead.Own || wait.Ahead.HeldSince.IsZero() {
		t.Errorf("%+v", wait.Ahead)
	}
	first := other.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	if wait := fails(other, ""); wait.Ahead.Path != "" && wait.Ahead.Path != l.Path() {
		t.Errorf("%+v", wait.Ahead)
	}
	giveBack(t, l)
	giveBack(t, first.lease(t))
}
