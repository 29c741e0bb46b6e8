package ensembles

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// upgradeEnv names the directory of the ZooKeeper to which the upgrade goes.
const upgradeEnv = "ZOOKEEPER_UPGRADE"

// Each server is killed and started again, one after the other.
func TestRollingKill(t *testing.T) {
	longtest.Only(t)
	scenario{name: "rolling restart, SIGKILL", run: func(ctx context.Context, s *site) error {
		return s.roll(ctx, s.Kill, nil)
	}}.test(t)
}

// The same with servers that are told to end.
func rollingRestart(t *testing.T) {
	scenario{name: "rolling restart, SIGTERM", run: func(ctx context.Context, s *site) error {
		return s.roll(ctx, s.Stop, nil)
	}}.test(t)
}

// Each server ends, and another version of ZooKeeper is started in its place, on its data.
func rollingUpgrade(t *testing.T) {
	home := os.Getenv(upgradeEnv)
	scenario{name: "rolling upgrade", run: func(ctx context.Context, s *site) error {
		before, err := s.versions(ctx)
		if err != nil {
			return err
		}
		err = s.roll(ctx, s.Stop, func(i int) error { return s.SetHome(i, home) })
		if err != nil {
			return err
		}
		after, err := s.versions(ctx)
		s.t.Logf("from %s to %s", before, after)
		for i := range after {
			if err == nil && before[i] == after[i] {
				err = fmt.Errorf("server %d is still %s", i, after[i])
			}
		}
		return err
	}}.test(t)
}

// roll ends each server and starts it again, as docs/operations.md says: the leader comes last, and each
// time all servers are in the quorum again before the next one.
func (s *site) roll(ctx context.Context, end func(int) error, between func(int) error) error {
	leader, err := s.Leader(ctx)
	if err != nil {
		return err
	}
	for n := range s.Len() {
		i := (leader + 1 + n) % s.Len()
		if err := end(i); err != nil {
			return err
		}
		s.faults++
		if between != nil {
			if err := between(i); err != nil {
				return err
			}
		}
		if err := s.Start(ctx, i); err != nil {
			return err
		}
		if err := s.inQuorum(ctx); err != nil {
			return err
		}
	}
	return nil
}

// versions returns the version of each server.
func (s *site) versions(ctx context.Context) ([]string, error) {
	all := make([]string, s.Len())
	for i := range all {
		metrics, err := s.Metrics(ctx, i)
		if err != nil {
			return nil, err
		}
		all[i], _, _ = strings.Cut(metrics["zk_version"], "-")
	}
	return all, nil
}
