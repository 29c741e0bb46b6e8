package share

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// The session may have only one node, that of the present turn. The waiters still get the next turn:
// their contender enters when the node is gone, in whatever way the turn ends.
func TestAtLimitOfNodes(t *testing.T) {
	for what, end := range map[string]func(*testing.T, *queue.Lease){
		"released": giveBack,
		"deleted by an operator": func(t *testing.T, l *queue.Lease) {
			testserver.Delete(t, l.Path())
			lostBy(t, l)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newProcess(t, dir, 1, session.WithNodeLimits(1, 1<<20))
			first := p.hold(t)
			second, third := p.wait(t, 1), p.wait(t, 2)
			giveBack(t, first)
			l := second.lease(t)
			end(t, l)
			giveBack(t, third.lease(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}
