package ensembles

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/zktest"
)

// between is how long the ensemble works in each state.
const between = 3 * time.Second

// Servers to which clients are connected are removed from the ensemble by reconfig. A follower and then
// the leader are removed and added again while they run. Then a follower is removed and stopped for good.
func serverRemoved(t *testing.T) {
	scenario{
		name:    "a client's server removed by reconfig",
		options: []zktest.RealOption{zktest.Reconfigurable(), zktest.Property("skipACL", "yes")},
		run: func(ctx context.Context, s *site) error {
			admin, _, err := zk.Connect(strings.Split(s.ConnectString(), ","), 2*timeout, zk.WithLogger(nothing{}))
			if err != nil {
				return err
			}
			defer admin.Close()
			members, _, err := admin.Get("/zookeeper/config")
			if err != nil {
				return err
			}
			for _, role := range []string{"follower", "leader"} {
				i, err := s.remove(ctx, admin, role)
				if err != nil {
					return err
				}
				if err := reconfig(ctx, admin, []string{member(members, i)}, nil); err != nil {
					return fmt.Errorf("add the %s again: %w", role, err)
				}
				if err := s.inQuorum(ctx); err != nil {
					return err
				}
			}
			i, err := s.remove(ctx, admin, "follower")
			if err != nil {
				return err
			}
			if err := s.Stop(i); err != nil {
				return err
			}
			pause(ctx, between)
			return s.WaitReady(ctx)
		},
	}.test(t)
}

// remove removes a server with some role from the ensemble, and lets the others work.
func (s *site) remove(ctx context.Context, admin *zk.Conn, role string) (i int, err error) {
	if err := s.inQuorum(ctx); err != nil {
		return 0, err
	}
	if i, err = s.Leader(ctx); err != nil {
		return 0, err
	}
	if role != "leader" {
		i = (i + 1) % s.Len()
	}
	s.faults++
	if err := reconfig(ctx, admin, nil, []string{fmt.Sprint(i + 1)}); err != nil {
		return i, fmt.Errorf("remove the %s: %w", role, err)
	}
	pause(ctx, between)
	return i, nil
}

// reconfig changes the members of the ensemble. It tries again while the servers elect a leader.
func reconfig(ctx context.Context, admin *zk.Conn, joining, leaving []string) error {
	ctx, cancel := context.WithTimeout(ctx, certainly)
	defer cancel()
	for {
		_, err := admin.IncrementalReconfig(joining, leaving, -1)
		if err == nil || !pause(ctx, time.Second) {
			return err
		}
	}
}

// member returns the line of a configuration that is about server i.
func member(config []byte, i int) string {
	for line := range strings.Lines(string(config)) {
		if strings.HasPrefix(line, fmt.Sprintf("server.%d=", i+1)) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

type nothing struct{}

func (nothing) Printf(string, ...any) {}
