package session_test

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// After a create whose reply was lost, the session may own a node or not. It does not send write
// heartbeats for the rest of its life because of that.
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
				_, err = s.Create(t.Context(), "/node", nil, session.Ephemeral)
				wantErr(t, "create", err, zk.ErrConnectionClosed)
				must(t, s.Sync(t.Context(), "/")) // connected again
				if stat, err := s.Exists(t.Context(), "/node"); err != nil {
					t.Fatal(err)
				} else if stat != nil {
					must(t, s.Delete(t.Context(), "/node", -1)) // like a caller that does not need the node
				}
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
