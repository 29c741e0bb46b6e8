package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Goroutines take locks of all kinds at random, give up half of their calls after some milliseconds, and another process
// takes the same locks. Connections break. There is room for what the goroutines want at a time, so no call is refused or
// hangs, and in the end all of the room is free. It is three goroutines with a lock each, or one with a MultiLock: see
// TestRandomAtLimit.
func TestRandomGivingUpAtLimit(t *testing.T) {
	for seed := range uint64(longtest.Pick(20, 300)) {
		inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
			workers, nodes := 3, 3
			if seed%4 < 2 {
				workers, nodes = 1, 2
			}
			g := &givingUp{t: t, seed: seed, keep: []time.Duration{2 * time.Millisecond, 50 * time.Millisecond, time.Minute}[seed%3]}
			m := connect(session.WithMaxNodes(nodes))
			server.Delay(time.Millisecond)
			stop := g.intrude(server, connect())
			singles, multis := differentLocks(t, m, "/base", zklock.WithLazyRelease(g.keep))
			if workers == 1 {
				singles = append(singles, multis...)
			}
			var all sync.WaitGroup
			for w := range workers {
				all.Go(func() { g.work(singles, uint64(w)) })
			}
			all.Wait()
			stop()
			time.Sleep(10 * time.Second) //nolint:forbidigo // in a bubble: until what was given up is gone
			g.allFree(m, nodes)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type givingUp struct {
	t    *testing.T
	seed uint64
	keep time.Duration
}

func (g *givingUp) random(n uint64) *rand.Rand { return rand.New(rand.NewPCG(g.seed, n)) }

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

// intrude takes the locks in another process, and breaks connections for each second seed, until stop is called.
func (g *givingUp) intrude(server *zktest.Server, m *session.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(g.t.Context())
	var both sync.WaitGroup
	every := func(n uint64, most time.Duration, f func(rng *rand.Rand)) {
		both.Go(func() {
			for rng := g.random(n); ; f(rng) {
				select {
				case <-time.After(upTo(rng, most)):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	locks, _ := differentLocks(g.t, m, "/base", zklock.WithLazyRelease(g.keep))
	every(100, 20*time.Millisecond, func(rng *rand.Rand) {
		if err := g.take(g.t.Context(), rng, locks); err != nil && !errors.Is(err, session.ErrLost) {
			g.t.Error(err)
		}
	})
	if g.seed%2 == 1 {
		every(101, 3*time.Second, func(*rand.Rand) { server.Disconnect() })
	}
	return func() { cancel(); both.Wait() }
}

func (g *givingUp) work(locks []randomLock, n uint64) {
	rng := g.random(n)
	for range 150 {
		patience := time.Minute
		if rng.IntN(2) == 0 {
			patience = upTo(rng, 12*time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(g.t.Context(), patience)
		if err := g.take(ctx, rng, locks); err != nil && (!errors.Is(err, context.DeadlineExceeded) || patience == time.Minute) {
			g.t.Error(err)
		}
		cancel()
	}
}

// take takes one of the locks, or tries to, and holds it for a moment.
func (g *givingUp) take(ctx context.Context, rng *rand.Rand, locks []randomLock) error {
	release, err := locks[rng.IntN(len(locks))](ctx, rng.IntN(4) == 0)
	switch {
	case errors.Is(err, queue.ErrBusy):
		return nil
	case err != nil:
		return err
	}
	time.Sleep(upTo(rng, 3*time.Millisecond)) //nolint:forbidigo // in a bubble
	return release(context.WithoutCancel(ctx))
}

// allFree checks that a session has room for so many nodes, and for not one more.
func (g *givingUp) allFree(m *session.Manager, nodes int) {
	s, err := m.Session(g.t.Context())
	must(g.t, err)
	_, err = s.Create(g.t.Context(), "/room", nil, session.Persistent)
	must(g.t, err)
	for i := range nodes {
		_, err := s.Create(g.t.Context(), fmt.Sprint("/room/", i), nil, session.Ephemeral)
		must(g.t, err)
	}
	_, err = s.Create(g.t.Context(), "/room/more", nil, session.Ephemeral)
	wantErr(g.t, "one more", err, session.ErrTooManyNodes)
}
