package queue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// nodesAhead makes nodes of contenders.
func nodesAhead(t *testing.T, m *session.Manager, dir, prefix string, n int) (all []*session.Node) {
	t.Helper()
	for range n {
		node, err := testserver.Session(t, m).Enter(t.Context(), session.NewNode{Dir: dir, Name: prefix})
		mustBe(t, err, nil)
		all = append(all, node)
	}
	return all
}

// A waiter that is cancelled leaves no watch on a node that stays, also if it was setting further watches at that moment.
func TestCancelledWaiterLeavesNoWatch(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		const dir = "/locks/one"
		ahead := nodesAhead(t, m, dir, queue.PrefixLock, 3)
		w := begin(t, on(t, m, dir), ask)
		synctest.Wait() // it watches the last two
		held := server.HoldReply(zktest.On(zktest.OpGetData, ahead[0].Path))
		<-ahead[2].Remove(context.Background()).Done()
		<-held.Hit() // it watches the first too
		w.cancel()
		w.wait(t)
		mustBe(t, w.err, context.Canceled)
		held.Release()
		wantNoWatch(t, server)
	})
}

// A waiter of a kind with a configuration leaves no watch on its directory, also if it has listed that several times.
func TestCancelledWaiterForgetsTheConfiguration(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		const dir = "/locks/one"
		ahead := nodesAhead(t, m, dir, queue.PrefixLease, 4)
		w := begin(t, on(t, m, dir), queue.Request{Kind: limited("1")})
		synctest.Wait()
		for _, n := range ahead[1:] { // it lists again
			<-n.Remove(context.Background()).Done()
			synctest.Wait()
		}
		w.cancel()
		w.wait(t)
		mustBe(t, w.err, context.Canceled)
		wantNoWatch(t, server)
	})
}
