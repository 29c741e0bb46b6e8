package simulation

import (
	"context"
	"fmt"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Mutexes whose nodes are made and deleted in transactions, with those of other workers of the manager.
var batchedKind = kind{
	name:      "batched",
	modes:     mutexKind.modes,
	modeOf:    mutexKind.modeOf,
	open:      mutexKind.open,
	together:  mutexKind.together,
	weight:    mutexKind.weight,
	slack:     mutexKind.slack,
	shared:    true,
	reentrant: true,
	batched:   true,
}

// apart is the trace hook for requests. Which requests share a transaction depends on their order of
// arrival. After a reconnect many goroutines send theirs at one instant, in an order that the scheduler
// chooses. So each waits here until a moment of its own, which the seed chooses.
func (m *member) apart(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
	if r.Op == "create" || r.Op == "delete" {
		m.w.sleepAs(m.party, 0, r.Op, m.w.trace.readable(r.Path))
	}
	return ctx, func(error) {}
}

// checkToken asks for the fencing token of a lease, and fails if another node of the directory has had
// that token.
func (k *worker) checkToken(c *call, l *queue.Lease) {
	token, err := l.Token(c.ctx)
	if err != nil {
		return
	}
	k.world.checks.token(c.path, l.Path(), token)
}

// token takes the token of a node in the directory of a lock.
func (cs *checks) token(dir, node string, token int64) {
	cs.mu.Lock()
	key := fmt.Sprint(dir, " ", token)
	other, known := cs.tokens[key]
	cs.tokens[key] = node
	cs.mu.Unlock()
	if known && other != node {
		cs.fail("two holders of %s have one token, %x", dir, token)
	}
}
