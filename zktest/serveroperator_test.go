package zktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// The leader carries out what an operator asks for.
func TestOperatorOfEnsemble(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 0, nil, 40*time.Second)
		c.does(plain("/d"))
		c.does(mkdir(0, OpCreateContainer, "/c", 4, znode.OpenACL))
		c.does(plain("/c/x"))
		c.does(remove(0, "/c/x", -1))
		if n := s.ReapContainers(); n != 1 {
			t.Errorf("%d containers reaped", n)
		}
		c.wants(c.ask(there("/c")), znode.CodeNoNode)
		if err := s.SetSequence("/", 41); err != nil {
			t.Error(err)
		}
		c.does(mkdir(0, OpCreate, "/s-", 2, znode.OpenACL))
		c.does(there("/s-0000000041"))

		s.SetCommitDelay(time.Second)
		began := time.Now()
		if err := s.DeleteNode("/d"); err != nil || time.Since(began) != time.Second {
			t.Errorf("deleted after %v: %v", time.Since(began), err)
		}
		c.wants(c.ask(there("/d")), znode.CodeNoNode)
		began = time.Now()
		if err := s.Expire(s.t.Context(), c.session); err != nil || time.Since(began) != time.Second {
			t.Errorf("expired after %v: %v", time.Since(began), err)
		}
		c.connected(false)
		s.SetCommitDelay(0)

		// Without a leader, deleting fails and expiring waits.
		c = s.call("second", 0, nil, 40*time.Second)
		c.does(ephemeral("/e"))
		s.StopServer(2)
		if err := s.DeleteNode("/e"); !errors.Is(err, quorum.ErrNoLeader) {
			t.Errorf("delete without a leader: %v", err)
		}
		if n := s.ReapContainers(); n != 0 {
			t.Errorf("%d containers reaped without a leader", n)
		}
		began = time.Now()
		if err := s.Expire(s.t.Context(), c.session); err != nil || time.Since(began) != 200*time.Millisecond {
			t.Errorf("expired after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		defer cancel()
		s.StopServer(0)
		s.pass(20 * time.Second)
		if err := s.Expire(ctx, c.session); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("expire without a leader: %v", err)
		}
	})
}

// A server alone can be stopped and started. It keeps its sessions.
func TestStopServerAlone(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 0, nil, 10*time.Second)
		c.does(ephemeral("/e"))
		s.StopServer(0)
		c.connected(false)
		s.pass(time.Hour)
		s.starts(0)
		s.pass(200 * time.Millisecond)
		c = s.call("again", 0, c, 10*time.Second)
		c.does(there("/e"))
		if r := c.does(plain("/n")); r.zxid != 3 {
			t.Errorf("transaction number %#x, want 3", r.zxid)
		}
		s.HoldServer(0)
		late := c.ask(there("/e"))
		c.waits(late)
		s.pass(5 * time.Second)
		s.ReleaseServer(0)
		c.wants(late, znode.CodeOK)
	}, Servers(1))
}
