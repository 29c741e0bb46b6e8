package ensembles

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

const (
	// standstill is an outage that every session survives.
	standstill = 3 * time.Second
	// settled is how long after a loss of the quorum something may still have been under way.
	settled = 2 * time.Second
	// without is how long there is no quorum then: longer than any session lives by itself.
	without = timeout + tick
)

// Both followers stand still for a while.
func quorumPaused(t *testing.T) {
	scenario{name: "quorum lost for 3 s", run: func(ctx context.Context, s *site) error {
		for range 2 {
			if err := s.pauseFollowers(ctx); err != nil {
				return err
			}
			s.everyoneServed()
		}
		return nil
	}}.test(t)
}

// pauseFollowers has both followers stand still, and go on.
func (s *site) pauseFollowers(ctx context.Context) error {
	_, followers, err := s.roles(ctx)
	if err != nil {
		return err
	}
	s.faults++
	for _, i := range followers {
		if err := s.Pause(i); err != nil {
			return err
		}
	}
	pause(ctx, standstill)
	for _, i := range followers {
		if err := s.Resume(i); err != nil {
			return err
		}
	}
	return s.inQuorum(ctx)
}

// Both followers are killed, and stay away for longer than sessions live.
func quorumLost(t *testing.T) {
	scenario{name: "quorum lost for longer than sessions live", run: func(ctx context.Context, s *site) error {
		return s.withoutQuorum(ctx, func(int) error { return s.nobodyServed(ctx, without) })
	}}.test(t)
}

// The same with a server that serves readers meanwhile. It serves none of these clients.
func readOnly(t *testing.T) {
	scenario{
		name:    "read-only mode",
		options: []zktest.RealOption{zktest.ReadOnlyMode()},
		run: func(ctx context.Context, s *site) error {
			return s.withoutQuorum(ctx, func(left int) error {
				zktest.Eventually(s.t, certainly, "a server that is read-only", func() bool { return s.health.modeOf(left) == "read-only" })
				if err := s.nobodyServed(ctx, without); err != nil {
					return err
				}
				if mode := s.health.modeOf(left); mode != "read-only" {
					return fmt.Errorf("the server that is left is %q and not read-only", mode)
				}
				return nil
			})
		},
	}.test(t)
}

// withoutQuorum kills both followers, and starts them again after a function, which is told of the server
// that is left. All locks are held as that begins.
func (s *site) withoutQuorum(ctx context.Context, meanwhile func(left int) error) error {
	leader, followers, err := s.roles(ctx)
	if err != nil {
		return err
	}
	defer s.cling(func(*client) bool { return true })()
	s.faults++
	for _, i := range followers {
		if err := s.Kill(i); err != nil {
			return err
		}
	}
	if !pause(ctx, settled) {
		return ctx.Err()
	}
	if err := meanwhile(leader); err != nil {
		return err
	}
	for _, i := range followers {
		if err := s.Launch(i); err != nil {
			return err
		}
	}
	return s.inQuorum(ctx)
}

// roles returns the leader and its followers.
func (s *site) roles(ctx context.Context) (leader int, followers []int, err error) {
	leader, err = s.Leader(ctx)
	return leader, []int{(leader + 1) % voters, (leader + 2) % voters}, err
}
