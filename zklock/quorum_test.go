package zklock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// quorumTimeout is the session timeout of the clients of an ensemble.
const quorumTimeout = 10 * time.Second

// ensemble has three servers, and clients that want one lock.
type ensemble struct {
	*zktest.Ensemble
	ctx     context.Context
	mutexes []*zklock.Mutex
}

// An ensemble of three that loses one server, its leader, and its quorum.
func TestEnsemble(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	const clients = 4
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	e := &ensemble{Ensemble: zktest.StartReal(t, zktest.Nodes(3)), ctx: ctx}
	for range clients {
		m := testserver.Connect(t, e.ConnectString(), session.WithTimeout(quorumTimeout),
			// Short waits, since servers that are down for long make them longer.
			session.WithBackoff(50*time.Millisecond, 50*time.Millisecond))
		e.mutexes = append(e.mutexes, newMutex(t, m, "/ensemble"))
	}
	// One after another. Each leaves the ensemble complete.
	t.Run("follower stopped", e.followerStopped)
	t.Run("leader killed", e.leaderKilled)
	t.Run("quorum lost", e.quorumLost)
}

func (e *ensemble) leader(t *testing.T) int {
	t.Helper()
	var leader int
	zktest.Eventually(t, testserver.Patience, "a leader", func() bool {
		var err error
		leader, err = e.Leader(e.ctx)
		return err == nil
	})
	return leader
}

// whileContending lets all clients contend while f runs, and checks that there were never two holders.
func (e *ensemble) whileContending(t *testing.T, f func(r *referee)) {
	t.Helper()
	var r referee
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, mx := range e.mutexes {
		wg.Go(func() { r.contend(e.ctx, t, mx.Acquire, stop) })
	}
	f(&r)
	close(stop)
	wg.Wait()
	r.check(t)
}

func (r *referee) waitProgress(t *testing.T) {
	t.Helper()
	n := r.count()
	zktest.Eventually(t, 2*testserver.Patience, "the lock to go round", func() bool { return r.count() >= n+20 })
}

// waitDisbelief waits until held returns false, and returns when it was asked. It fails if held still returns
// true when asked later than limit from now. A late look at the answer does not matter.
func waitDisbelief(t *testing.T, limit time.Duration, held func() bool) (asked time.Duration) {
	t.Helper()
	since := time.Now()
	zktest.Eventually(t, limit+testserver.Patience, "the holder to know", func() bool {
		asked = time.Since(since)
		if !held() {
			return true
		}
		if asked > limit {
			t.Fatalf("believed for %v, with a session timeout of %v", asked, limit)
		}
		return false
	})
	return asked
}

// The clients go on without one of three servers.
func (e *ensemble) followerStopped(t *testing.T) {
	i := (e.leader(t) + 1) % e.Len()
	e.whileContending(t, func(r *referee) {
		r.waitProgress(t)
		must(t, e.Stop(i))
		r.waitProgress(t)
	})
	must(t, e.Start(e.ctx, i))
}

// When the leader is killed, the other two elect another, and the clients go on.
func (e *ensemble) leaderKilled(t *testing.T) {
	i := e.leader(t)
	e.whileContending(t, func(r *referee) {
		r.waitProgress(t)
		must(t, e.Kill(i))
		r.waitProgress(t)
	})
	must(t, e.Start(e.ctx, i))
}

// Without a quorum no client reports held for longer than the session timeout. When there is one again, exactly
// one client gets the lock.
func (e *ensemble) quorumLost(t *testing.T) {
	var r referee
	type grant struct {
		lease *queue.Lease
		err   error
	}
	grants := make(chan grant, len(e.mutexes))
	holder := e.mutexes[0]
	must(t, holder.Lock(e.ctx))
	for _, mx := range e.mutexes[1:] {
		go func() {
			l, err := mx.Acquire(e.ctx)
			if err == nil {
				r.enter(l)
			}
			grants <- grant{l, err}
		}()
	}
	leader := e.leader(t)
	down := []int{leader, (leader + 1) % e.Len()}
	for _, i := range down {
		must(t, e.Kill(i))
	}
	known := waitDisbelief(t, quorumTimeout, holder.Held)
	t.Logf("known %v after the quorum was lost", known)
	select {
	case g := <-grants:
		t.Fatalf("granted without a quorum: %v %v", g.lease, g.err)
	default:
	}
	for _, i := range down {
		must(t, e.Launch(i))
	}
	must(t, e.WaitReady(e.ctx))
	wantErr(t, "Unlock", holder.Unlock(), session.ErrLost)
	for range e.mutexes[1:] {
		g := <-grants // within the time of e.ctx
		must(t, g.err)
		if n := r.held(); n != 1 {
			t.Errorf("%d hold after the quorum came back", n)
		}
		must(t, g.lease.Release(e.ctx))
	}
	r.check(t)
}
