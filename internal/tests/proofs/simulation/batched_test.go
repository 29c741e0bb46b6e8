package simulation

import (
	"fmt"

	"github.com/turnstile-go/turnstile/queue"
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
