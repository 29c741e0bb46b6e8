package outages

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// mostSlow bounds how often TestLeaderKilled kills the leader again because a busy machine took longer to elect
// another than sessions need survive.
const mostSlow = 5

// killed is how many sessions TestLeaderKilled has on each server as it kills the leader.
const killed = 4

// TestLeaderKilled kills the leader of three real servers, again and again. None of the
// sessions that hold locks is lost, whichever server they were connected to.
func TestLeaderKilled(t *testing.T) {
	longtest.Only(t)
	e := zktest.StartReal(t, zktest.Nodes(servers), zktest.TickTime(tick))
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*killsFlag+1+mostSlow)*2*time.Minute)
	defer cancel()
	var old []*holder // that live through all of it
	for i := range servers {
		old = append(old, realHolder(ctx, t, e, i, fmt.Sprintf("/locks/old-%d", i)))
	}
	slow := 0
	for kill := 0; kill < *killsFlag+slow; kill++ {
		var all []*holder
		for i := range servers * killed {
			all = append(all, realHolder(ctx, t, e, i%servers, fmt.Sprintf("/locks/%d-%d", kill, i)))
		}
		time.Sleep(2*time.Second + rand.N(2*time.Second)) //nolint:forbidigo // the tick is learned; then any moment of a round will do
		all = append(all, old...)
		lowest, took, elected := killLeader(ctx, t, e, all)
		n := lost(all)
		t.Logf("kill %d: lost %d of %d; another led after %v; connected again after %v; the least that remained was %v",
			kill+1, n, len(all), elected, took, lowest)
		switch most := survivable(learned); {
		case n > 0 && elected > most:
			slow++
			old = slices.DeleteFunc(old, (*holder).lost)
			if slow > mostSlow {
				t.Fatalf("the machine is too busy: %d times sessions were lost when nobody led for more than %v", slow, most)
			}
		case n > 0:
			t.Fatalf("lost %d of %d sessions as the leader was killed", n, len(all))
		}
		for _, h := range all[:servers*killed] {
			if err := h.manager.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// realHolder opens a session on server i that holds a lock. Later it connects to any.
func realHolder(ctx context.Context, t *testing.T, e *zktest.Ensemble, i int, path string) *holder {
	t.Helper()
	var free atomic.Bool
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !free.Load() {
			addr = e.Addr(i)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	m, err := session.Connect(ctx, e.ConnectString(), append(options(defaultTimeout, learned), session.WithDialer(dial))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	s, err := m.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := zklock.New(m, path)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := lock.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	free.Store(true)
	return &holder{m, s, lease}
}

// killLeader kills the leader and starts it again at once. It returns when all servers serve
// and all sessions are connected or lost: the least that any session had left meanwhile,
// how long it took until all were connected, and until a server led.
func killLeader(ctx context.Context, t *testing.T, e *zktest.Ensemble, all []*holder) (lowest, took, elected time.Duration) {
	t.Helper()
	leader, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := e.Kill(leader); err != nil {
		t.Fatal(err)
	}
	leads := make(chan time.Duration, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := e.Leader(ctx); err == nil {
				break
			}
		}
		leads <- time.Since(began)
	}()
	ready := make(chan error, 1)
	go func() { ready <- e.Start(ctx, leader) }()
	lowest = least(all)
	for {
		lowest = min(lowest, least(all))
		if away(all) {
			took = time.Since(began)
		}
		select {
		case err := <-ready:
			if err == nil {
				err = e.WaitReady(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			zktest.Eventually(t, testserver.Patience, "every session to be connected or lost", func() bool {
				lowest = min(lowest, least(all))
				return !away(all)
			})
			return lowest, took, <-leads
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// away reports whether any session that lives is not connected.
func away(all []*holder) bool {
	for _, h := range all {
		if !h.lost() && h.manager.State() != session.Connected {
			return true
		}
	}
	return false
}
