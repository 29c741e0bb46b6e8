package hold

import (
	"context"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// heldEnd is a hook that sends when contenders wait, and holds the first of them up at the end of its
// wait.
func heldEnd(watching chan<- struct{}, ended chan<- error, proceed <-chan struct{}) session.Option {
	var once sync.Once
	return session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			watching <- struct{}{}
			return ctx, func(err error) {
				once.Do(func() {
					ended <- err
					<-proceed
				})
			}
		},
	})
}

// A shared contender that was called back, because no waiter was left, takes its time to leave. A waiter
// that comes in the meantime has a new one. The first one does not affect it: neither by its
// failure, nor by a grant at the moment of the call-back.
func TestLocalCalledBack(t *testing.T) {
	for _, granted := range []bool{false, true} {
		t.Run(map[bool]string{false: "waiting", true: "granted"}[granted], func(t *testing.T) {
			dir := testserver.Path(t)
			holder := newProcess(t, dir, place.Request{}, 1)
			h := holder.hold(t)
			watching, ended, proceed := make(chan struct{}, 10), make(chan error, 1), make(chan struct{})
			p := newProcess(t, dir, place.Request{}, 1, heldEnd(watching, ended, proceed))
			first := p.wait(t, 1)
			<-watching
			if granted {
				giveBack(t, h)
				expect.NoError(t, <-ended)
			}
			first.cancel()
			first.fails(t, context.Canceled)
			if !granted {
				<-ended
			}
			second := p.wait(t, 1)
			<-watching // for the first's node, if for nothing else
			close(proceed)
			if !granted {
				testserver.WaitChildren(t, dir, 2)
				giveBack(t, h)
			}
			giveBack(t, second.lease(t))
			testserver.WaitChildren(t, dir, 0)
			third := p.hold(t)
			giveBack(t, third)
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// As above, but nobody comes: the lock is free for the next waiter.
func TestLocalCalledBackAlone(t *testing.T) {
	dir := testserver.Path(t)
	h := newProcess(t, dir, place.Request{}, 1).hold(t)
	watching, ended, proceed := make(chan struct{}, 10), make(chan error, 1), make(chan struct{})
	p := newProcess(t, dir, place.Request{}, 1, heldEnd(watching, ended, proceed))
	first := p.wait(t, 1)
	<-watching
	giveBack(t, h)
	expect.NoError(t, <-ended)
	first.cancel()
	first.fails(t, context.Canceled)
	close(proceed)
	testserver.WaitChildren(t, dir, 0)
	giveBack(t, p.hold(t))
}
