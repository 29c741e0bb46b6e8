package hold

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The first caller of a Local knows that it has to wait, and gives up before its watches are set. The node stays for
// the waiters that have come since: a contender of another process that came after it is behind them.
func TestLocalFirstLeavesItsPlace(t *testing.T) {
	dir := testserver.Path(t)
	asks := session.WithTrace(session.Trace{Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
		return ctx, nil
	}})
	p, q := newProcess(t, dir, place.Request{}, 1, asks), newProcess(t, dir, place.Request{}, 1)
	held := q.hold(t)
	reply := p.proxy.HoldReply(zktest.On(zktest.OpGetData, dir+"/"))
	first := p.begin(expect.Patient(t))
	<-reply.Hit()
	testserver.WaitChildren(t, dir, 2)
	p.mu.Lock()
	waiting := p.waiting.Len() // with the first, if another goroutine contends for it by now
	p.mu.Unlock()
	second := p.wait(t, waiting+1)
	later := newProcess(t, dir, place.Request{}, 1).begin(expect.Patient(t))
	testserver.WaitChildren(t, dir, 3)
	first.cancel()
	first.fails(t, context.Canceled)
	reply.Release()
	giveBack(t, held)
	giveBack(t, second.lease(t))
	giveBack(t, later.lease(t))
}
