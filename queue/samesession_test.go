package queue_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// line returns contenders of one session that have come one after another, and wait.
func line(t *testing.T, m *session.Manager, n int, r queue.Request) (all []*call) {
	t.Helper()
	for range n {
		all = append(all, begin(t, on(t, m, "/locks/one"), r))
		synctest.Wait()
	}
	return all
}

// serve has contenders get the lock and release it, in this order.
func serve(t *testing.T, held *queue.Lease, all ...*call) {
	t.Helper()
	for i, c := range all {
		for _, other := range all[i:] {
			other.waits(t, "another holds")
		}
		release(t, held)
		held = c.get(t)
		synctest.Wait()
	}
	release(t, held)
}

// Contenders of one session are served in order.
func TestHandOversWithinSession(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held := holdElsewhere(t, server)
		serve(t, held, line(t, m, 10, ask)...)
	})
}

// A contender that gives up leaves no hole, and another that belongs to another session is not passed.
func TestHolesWithinSession(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held := holdElsewhere(t, server)
		other := testserver.Connect(t, "zookeeper:2181", session.WithDialer(server.Dialer()), session.WithTimeout(long))
		all := line(t, m, 3, ask)
		all = append(all, line(t, other, 1, ask)...)
		all = append(all, line(t, m, 3, ask)...)
		all[1].cancel()
		all[5].cancel()
		synctest.Wait()
		serve(t, held, all[0], all[2], all[3], all[4], all[6]) // that of the other session
	})
}

// A contender whose neighbours ahead have given up, before any of them had the lock, lists again. It does not take their
// end for its turn.
func TestNeighboursGiveUp(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held := holdElsewhere(t, server)
		all := line(t, m, 5, ask)
		all[2].cancel()
		all[3].cancel()
		synctest.Wait()
		all[4].waits(t, "others are ahead")
		serve(t, held, all[0], all[1], all[4])
	})
}

// Contenders of kinds that count different nodes do not rely on each other.
func TestKindsWithinSession(t *testing.T) {
	wide := ask
	wide.Kind = &queue.Kind{Name: "wide", Prefixes: []string{"wide-", queue.PrefixLock, queue.PrefixKazooLock}, Policy: mutex.Policy}
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held := holdElsewhere(t, server)
		first := line(t, m, 1, wide)[0] // to the next two it is no contender
		narrow := line(t, m, 2, ask)
		last := line(t, m, 1, wide)[0]
		release(t, held)
		release(t, narrow[0].get(t))
		release(t, narrow[1].get(t))
		synctest.Wait()
		last.waits(t, "the first contender of its kind holds")
		release(t, first.get(t))
		release(t, last.get(t))
	})
}

// The error of a wait names the holder, which is of the same session, and none that is gone.
func TestErrorWithinSession(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held := holdElsewhere(t, server)
		all := line(t, m, 2, ask)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := on(t, m, "/locks/one").Acquire(ctx, ask)
			failed <- err
		}()
		synctest.Wait()
		release(t, held)
		release(t, all[0].get(t))
		second := all[1].get(t)
		synctest.Wait()
		cancel()
		err := <-failed
		mustBe(t, err, context.Canceled)
		if !strings.Contains(err.Error(), "(held by this process, in the queue for ") {
			t.Error(err)
		}
		release(t, second)
	})
}

// A reader goes beside others. It does not tell a writer behind it that none is ahead.
func TestReadersWithinSession(t *testing.T) {
	read, write := ask, ask
	read.Kind = &queue.Kind{Name: "read", Prefixes: []string{queue.PrefixRead, queue.PrefixLock}, Policy: func(queue.Node) queue.Policy {
		return queue.Policy{Weight: func(ahead queue.Node) int { return strings.Count(ahead.Prefix, queue.PrefixLock) }}
	}}
	write.Kind = &queue.Kind{Name: "write", Prefixes: []string{queue.PrefixLock, queue.PrefixRead}, Policy: mutex.Policy}
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		held, err := on(t, m, "/locks/one").Acquire(t.Context(), write)
		mustBe(t, err, nil)
		readers, writer := line(t, m, 3, read), line(t, m, 1, write)[0]
		release(t, held)
		release(t, readers[1].get(t))
		release(t, readers[2].get(t))
		synctest.Wait()
		writer.waits(t, "a reader holds")
		release(t, readers[0].get(t))
		release(t, writer.get(t))
	})
}

// A contender that shares the lock with one other does not tell those behind it that none is ahead.
func TestPairsWithinSession(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		all := line(t, m, 5, queue.Request{Kind: pair})
		held := all[0].get(t)
		release(t, all[1].get(t))
		release(t, all[2].get(t))
		last := all[3].get(t)
		synctest.Wait()
		all[4].waits(t, "two others hold")
		release(t, held)
		release(t, last)
		release(t, all[4].get(t))
	})
}
