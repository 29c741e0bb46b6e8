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
		wantNoWatch(t, server)
	})
}

// A waiter of a kind with a configuration leaves no watch on its directory, also if it has listed that several times.
func TestCancelledWaiterForgetsTheConfiguration(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		kind := &queue.Kind{Name: "counted", Prefixes: []string{queue.PrefixLease}, Configuration: &queue.Configuration{
			Config: []byte("1"),
			Policy: func(me queue.Node, _ queue.Config) (queue.Policy, error) { return queue.LeasePolicy(me, 1), nil },
		}}
		const dir = "/locks/one"
		s, err := m.Session(t.Context())
		mustBe(t, err, nil)
		var ahead []*session.Node
		for range 4 {
			n, err := s.Enter(t.Context(), session.NewNode{Dir: dir, Name: queue.PrefixLease})
			mustBe(t, err, nil)
			ahead = append(ahead, n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := on(t, m, dir).Acquire(ctx, queue.Request{Kind: kind})
			ended <- err
		}()
		synctest.Wait()
		for _, n := range ahead[1:] { // it lists again
			<-n.Remove(context.Background()).Done()
			synctest.Wait()
		}
		cancel()
		mustBe(t, <-ended, context.Canceled)
		wantNoWatch(t, server)
	})
}
