package faultmatrix

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/elected"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// observerFaults strike at a request of an observer.
var observerFaults = map[string]func(ctx context.Context, p *zktest.Proxy, m *session.Manager, at zktest.Match){
	"cut-before": func(_ context.Context, p *zktest.Proxy, _ *session.Manager, at zktest.Match) { p.CutBefore(at) },
	"cut-after":  func(_ context.Context, p *zktest.Proxy, _ *session.Manager, at zktest.Match) { p.CutAfterCommit(at) },
	"expire":     expireAt,
}

// expireAt ends the session by force while the reply to the request is on its way.
func expireAt(ctx context.Context, p *zktest.Proxy, m *session.Manager, at zktest.Match) {
	held := p.HoldReply(at)
	go func() {
		defer held.Release()
		select {
		case <-held.Hit():
			if s, err := m.Session(ctx); err == nil {
				_ = p.Expire(ctx, s.ID()) // the observer then has to see the same
			}
		case <-ctx.Done():
		}
	}()
}

// Whatever request of an observer a fault strikes at, the observer is told of each change that follows.
func TestObserver(t *testing.T) {
	longtest.Only(t)
	steps := observeThrough(t, 0, nil)
	if steps < 5 {
		t.Fatalf("an observer sends %d requests", steps)
	}
	for name, fault := range observerFaults {
		for n := range steps {
			t.Run(fmt.Sprintf("%s/%d", name, n+1), func(t *testing.T) {
				t.Parallel()
				observeThrough(t, n+1, fault)
			})
		}
	}
	longtest.Covered(t, "%d faults at each of %d requests of an observer", len(observerFaults), steps)
}

// observeThrough has leaders come and go before an observer, with a fault at its n-th request. It returns how many
// requests the observer has sent.
func observeThrough(
	t *testing.T, n int, fault func(context.Context, *zktest.Proxy, *session.Manager, zktest.Match),
) (requests int) {
	s, dir := common(t), testserver.Path(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	proxy := zktest.StartProxy(t, s.server.Addr(0))
	m, err := connect(proxy.Addr(), timeout)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var sent atomic.Int64
	asks := func(r zktest.Request) bool { return r.Op != zktest.OpPing && strings.HasPrefix(r.Path, dir) }
	if fault != nil {
		fault(ctx, proxy, m, func(r zktest.Request) bool { return asks(r) && sent.Add(1) == int64(n) })
	}

	e, err := election.New(m, dir)
	if err != nil {
		t.Fatal(err)
	}
	var view atomic.Value // the path of the leader's node, or ""
	watching, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for leader := range e.Observe(watching) {
			view.Store(leader.Path)
		}
	}()
	defer func() { stop(); <-over }()
	sees := func(what, path string) {
		t.Helper()
		zktest.Eventually(t, patience, what, func() bool { return view.Load() == path })
	}
	sees("that there is no directory", "")
	first := lead(ctx, t, s.holders, dir)
	if first == nil {
		t.FailNow()
	}
	sees("the first leader", first.Lease.Path())
	second := make(chan *elected.Term, 1)
	go func() { second <- lead(ctx, t, s.rivals, dir) }()
	waitCandidates(ctx, t, s, dir, 2)
	end(ctx, t, first)
	next := <-second
	if next == nil {
		t.FailNow()
	}
	sees("the second leader", next.Lease.Path())
	end(ctx, t, next)
	sees("that nobody leads", "")
	last := lead(ctx, t, s.holders, dir)
	if last == nil {
		t.FailNow()
	}
	sees("the last leader", last.Lease.Path())
	end(ctx, t, last)
	if fault != nil && sent.Load() < int64(n) {
		t.Log("the fault has not struck: there were fewer requests this time")
	}
	return proxy.Count(asks)
}

// lead begins a term. It may be called in any goroutine, and returns nil if it fails.
func lead(ctx context.Context, t *testing.T, m *session.Manager, dir string) *elected.Term {
	term, err := elected.Acquire(ctx, m, dir)
	if err != nil {
		t.Error(err)
	}
	return term
}

func end(ctx context.Context, t *testing.T, term *elected.Term) {
	t.Helper()
	if err := unlessPending(term.Resign(ctx)); err != nil {
		t.Error(err)
	}
}

// waitCandidates waits until a directory has some contenders.
func waitCandidates(ctx context.Context, t *testing.T, s *site, dir string, n int) {
	t.Helper()
	zktest.Eventually(t, patience, fmt.Sprint(n, " candidates"), func() bool {
		names, err := s.children(ctx, dir)
		return err == nil && len(names) == n
	})
}
