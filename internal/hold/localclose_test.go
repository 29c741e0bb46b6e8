package hold

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// The manager is closed while turns begin, are handed over and end, and the directory comes and goes
// with them. All holders and waiters get an error, and no node is left.
func TestLocalCloseMeanwhile(t *testing.T) {
	for round := range longtest.Pick(6, 12) {
		dir := testserver.Path(t)
		p := newProcess(t, dir, place.Request{}, 1+round%3)
		released, done := context.WithCancel(context.Background())
		done() // nobody waits for a release
		held := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					l, err := p.Acquire(context.Background())
					if errors.Is(err, session.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					_ = l.Release(released, place.Done)
					select {
					case held <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 10 * round {
			<-held
		}
		expect.NoError(t, p.m.Close())
		all.Wait()
		testserver.WaitChildren(t, dir, 0)
		p.mu.Lock()
		if !p.idleLocked() || p.waiting.Len() > 0 {
			t.Errorf("trying: %v; a turn: %v; a shared contender: %v; %d waiters", p.trying, p.turn != nil, p.shared != nil, p.waiting.Len())
		}
		p.mu.Unlock()
	}
}
