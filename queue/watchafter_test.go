package queue_test

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// watchAfter is the time after which an uncontended lock watches its node, as documented.
const watchAfter = 5 * time.Millisecond

// alone runs f in virtual time, with a server of its own that answers in no time.
func alone(t *testing.T, f func(*testing.T, *zktest.Server, *session.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
		m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
			session.WithTimeout(long), session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		mustBe(t, err, nil)
		defer m.Close()
		f(t, server, m)
	})
}

// An uncontended lock that is held for a short time costs three requests. If it is held longer, or its
// token is asked for, it costs one more, which watches its node.
func TestWatchAfter(t *testing.T) {
	for name, c := range map[string]struct {
		hold  time.Duration
		token bool
		gets  int
	}{
		"released at once":  {0, false, 0},
		"released early":    {watchAfter - 1, false, 0},
		"held on":           {watchAfter + 1, false, 1},
		"asked for":         {0, true, 1},
		"asked for in time": {watchAfter + 1, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
				q := on(t, m, "/locks/one")
				release(t, acquire(t, q)) // makes the directory
				server.ResetRequests()
				l := acquire(t, q)
				if c.token {
					wantTokenNow(t, l)
					wantTokenNow(t, l)
				}
				time.Sleep(c.hold)
				release(t, l)
				time.Sleep(2 * watchAfter)
				for op, want := range map[zktest.Op]int{
					zktest.OpCreate: 1, zktest.OpGetChildren2: 1, zktest.OpDelete: 1, zktest.OpGetData: c.gets,
				} {
					if got := server.Count(zktest.Any(op)); got != want {
						t.Errorf("%d requests %v, want %d", got, op, want)
					}
				}
			})
		})
	}
}

// wantTokenNow checks that Token takes no longer than the server, which takes no time.
func wantTokenNow(t *testing.T, l *queue.Lease) {
	t.Helper()
	start := time.Now()
	if token, err := l.Token(t.Context()); err != nil || token == 0 {
		t.Errorf("token %d: %v", token, err)
	}
	if took := time.Since(start); took > 0 {
		t.Errorf("the token took %v", took)
	}
}

// If a node is deleted before it is watched, the holder finds out when the watch is set.
func TestDeletedBeforeWatched(t *testing.T) {
	alone(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
		l := acquire(t, on(t, m, "/locks/one"))
		mustBe(t, server.DeleteNode(l.Path()), nil)
		start := time.Now()
		await(t, l.Done(), "the holder to be told")
		mustBe(t, l.Err(), session.ErrLost)
		if took := time.Since(start); took > watchAfter {
			t.Errorf("told %v after the deletion", took)
		}
	})
}
