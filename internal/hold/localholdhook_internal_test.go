package hold

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Somebody who got the lease from the Hold hook releases it before the hook has returned. The Local
// hands the lock over to the next waiter, and the turn has to know of that hold: its loss ends it.
func TestLocalLeaseEndsInHoldHook(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Bound())
	defer cancel()
	inHook, goOn := make(chan *place.Lease, 1), make(chan struct{})
	first := true
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithTrace(session.Trace{
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			if first {
				first = false
				l, _ := place.LeaseFrom(ctx)
				inHook <- l
				<-goOn
			}
			return nil
		},
	}))
	q, err := place.New((*core.Manager)(m), testserver.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	local, err := NewLocal(q, place.Request{Kind: mutexKind}, LocalConfig{Handovers: 5})
	if err != nil {
		t.Fatal(err)
	}
	acquire := func() <-chan *place.Lease {
		got := make(chan *place.Lease, 1)
		go func() {
			l, err := local.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		return got
	}
	one := acquire()
	released := <-inHook
	two := acquire()
	zktest.Eventually(t, testserver.Patience, "the second to wait", func() bool {
		local.mu.Lock()
		defer local.mu.Unlock()
		return local.waiting.Len() == 1
	})
	if err := released.Release(ctx, place.Done); err != nil {
		t.Fatal(err)
	}
	second := <-two
	close(goOn)
	<-one
	if second == nil || second.Path() != released.Path() {
		t.Fatal("the lock was not handed over")
	}
	testserver.Delete(t, second.Path())
	select {
	case <-second.Done():
	case <-ctx.Done():
		t.Error("the second hold does not end, although its node was deleted")
	}
}
