package queue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A waiter that is cancelled leaves no watch on a node that stays, also if it was setting further watches at that moment.
func TestCancelledWaiterLeavesNoWatch(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		const dir = "/locks/one"
		s, err := m.Session(t.Context())
		mustBe(t, err, nil)
		var ahead []*session.Node
		for range 3 {
			n, err := s.Enter(t.Context(), session.NewNode{Dir: dir, Name: queue.PrefixLock})
			mustBe(t, err, nil)
			ahead = append(ahead, n)
		}
		w := begin(t, on(t, m, dir), ask)
		synctest.Wait() // it watches the last two
		held := server.HoldReply(zktest.On(zktest.OpGetData, ahead[0].Path))
		<-ahead[2].Remove(context.Background()).Done()
		<-held.Hit() // it watches the first too
		w.cancel()
		w.wait(t)
		mustBe(t, w.err, context.Canceled)
		held.Release()
		synctest.Wait()
		metrics, err := server.Metrics()
		mustBe(t, err, nil)
		if n := metrics["zk_watch_count"]; n != "0" {
			t.Errorf("%s watches are left", n)
		}
	})
}
