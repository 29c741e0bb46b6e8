package ensembles

import (
	"context"
	"testing"
)

// leaders is how many leaders are killed.
const leaders = 5

// The leader is killed again and again. Each time it is started again at once.
func leaderKilled(t *testing.T) {
	scenario{name: "leader killed again and again", run: func(ctx context.Context, s *site) error {
		for range leaders {
			if err := s.killLeader(ctx); err != nil {
				return err
			}
		}
		return nil
	}}.test(t)
}

// killLeader kills the leader, starts it again, and waits until all servers are in the quorum.
func (s *site) killLeader(ctx context.Context) error {
	leader, err := s.Leader(ctx)
	if err != nil {
		return err
	}
	s.faults++
	if err := s.Restart(ctx, leader); err != nil {
		return err
	}
	return s.inQuorum(ctx)
}
