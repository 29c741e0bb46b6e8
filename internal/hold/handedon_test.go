package hold

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/zktest"
)

// The first caller of a Local hands its attempt on when it has to wait. The shared contender goes on from that wait, and knows
// who is ahead, without another listing.
func TestHandedOnAttemptKnowsWhoIsAhead(t *testing.T) {
	dir := testserver.Path(t)
	holder := newProcess(t, dir, place.Request{}, 1).hold(t)
	p := newProcess(t, dir, place.Request{}, 1)
	ctx, cancel := context.WithCancel(expect.Patient(t))
	failed := make(chan error, 1)
	go func() {
		_, err := p.Acquire(ctx)
		failed <- err
	}()
	zktest.Eventually(t, testserver.Patience, "the shared contender", func() bool { return p.in() == contending })
	zktest.Eventually(t, testserver.Patience, "its view", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.q.Why(&p.shared.Shown, time.Now()).Ahead.Path != ""
	})
	cancel()
	var wait *kinds.WaitError
	if err := <-failed; !errors.Is(err, context.Canceled) || !errors.As(err, &wait) || wait.Ahead.Path != holder.Path() {
		t.Errorf("%v: %+v", err, wait)
	}
	testserver.WaitChildren(t, dir, 1)
	giveBack(t, holder)
}

// A try that finds a holder whose place is not kept is answered by its listing: it watches nothing, and waits for nothing.
func TestTryOfBusyLockWatchesNothing(t *testing.T) {
	dir := testserver.Path(t)
	holder := newProcess(t, dir, place.Request{}, 1).hold(t)
	p := newProcess(t, dir, place.Request{}, 1)
	if _, err := p.q.TryAcquire(expect.Patient(t), place.Request{Kind: mutexKind}); !errors.Is(err, place.ErrBusy) {
		t.Errorf("error %v, want %v", err, place.ErrBusy)
	}
	if n := p.proxy.Count(zktest.On(zktest.OpGetData, dir)); n > 0 {
		t.Errorf("the try has watched %d nodes", n)
	}
	giveBack(t, holder)
}
