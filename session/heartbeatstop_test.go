package session_test

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A session whose nodes are gone sends no write heartbeats, also if the reply to a create was lost.
func TestHeartbeatWritesStop(t *testing.T) {
	for name, cut := range map[string]func(*zktest.Server, zktest.Match) *zktest.Fault{
		"not made": (*zktest.Server).CutBefore,
		"made":     (*zktest.Server).CutAfterCommit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 10 * time.Second
				srv := zktest.Start(t)
				m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(srv.Dialer()),
					session.WithTimeout(timeout), session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
				must(t, err)
				defer m.Close()
				s, err := m.Session(t.Context())
				must(t, err)
				cut(srv, zktest.On(zktest.OpCreate, "/node"))
				node, err := makeNode(t.Context(), s, "/node", nil)
				must(t, err)
				must(t, s.Delete(t.Context(), node, -1))
				time.Sleep(3 * timeout)
				srv.ResetRequests()
				time.Sleep(10 * timeout)
				must(t, s.Err())
				if n := srv.Count(zktest.Any(zktest.OpMulti)); n > 0 {
					t.Errorf("%d writes in 10 timeouts of a session that owns nothing", n)
				}
			})
		})
	}
}
