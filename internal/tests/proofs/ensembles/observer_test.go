package ensembles

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/zktest"
)

// Every second client connects to an observer only. The leader is killed, a follower is killed, and the
// observer itself is restarted.
func observerOnly(t *testing.T) {
	scenario{
		name:    "an observer as the only server",
		options: []zktest.RealOption{zktest.Observers(1)},
		servers: viaObserver,
		run: func(ctx context.Context, s *site) error {
			if err := s.killLeader(ctx); err != nil {
				return err
			}
			leader, err := s.Leader(ctx)
			if err != nil {
				return err
			}
			s.faults += 2
			if err := s.Restart(ctx, (leader+1)%voters); err != nil {
				return err
			}
			if err := s.inQuorum(ctx); err != nil {
				return err
			}
			if err := s.Stop(observer); err != nil {
				return err
			}
			if err := s.Start(ctx, observer); err != nil {
				return err
			}
			return s.inQuorum(ctx)
		},
	}.test(t)
}

// The observer is away for longer than sessions live. Clients that know only the observer have all locks, and
// the others take them.
func observerAway(t *testing.T) {
	scenario{
		name:    "the observer away for longer than sessions live",
		options: []zktest.RealOption{zktest.Observers(1)},
		servers: viaObserver,
		run: func(ctx context.Context, s *site) error {
			letGo := s.cling(func(c *client) bool { return len(c.servers) == 1 })
			s.faults++
			if err := s.Kill(observer); err != nil {
				return err
			}
			if !pause(ctx, without+tick) {
				return ctx.Err()
			}
			letGo()
			if err := s.Start(ctx, observer); err != nil {
				return err
			}
			return s.inQuorum(ctx)
		},
	}.test(t)
}

// observer is the server behind the voters.
const observer = voters

// viaObserver has every second client connect to the observer only, and the others to any server. Each
// lock has clients of both kinds.
func viaObserver(client int) []int {
	if client%2 == 0 {
		return []int{observer}
	}
	return []int{0, 1, 2, observer}
}
