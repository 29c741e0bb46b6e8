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

// An Observe that ends while it lists a directory leaves no watch on it.
func TestObserveLeavesNoWatch(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		const dir = "/locks/one"
		s, err := m.Session(t.Context())
		mustBe(t, err, nil)
		for _, path := range []string{"/locks", dir} {
			_, err = s.Create(t.Context(), path, nil, session.Persistent)
			mustBe(t, err, nil)
		}
		held := server.HoldReply(nth(3, ofContenders(dir, zktest.OpGetChildren2))) // behind the one that sets the watch
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			for _, err := range on(t, m, dir).Observe(ctx, mutex) {
				ended <- err
			}
		}()
		<-held.Hit()
		cancel()
		mustBe(t, <-ended, context.Canceled)
		held.Release()
		wantNoWatch(t, server)
	})
}

// wantNoWatch fails if a server in a bubble has a watch, once all that is under way has ended.
func wantNoWatch(t *testing.T, server *zktest.Server) {
	t.Helper()
	synctest.Wait()
	metrics, err := server.Metrics()
	mustBe(t, err, nil)
	if n := metrics["zk_watch_count"]; n != "0" {
		t.Errorf("%s watches are left", n)
	}
}
