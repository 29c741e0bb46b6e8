package share

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const long = 10 * time.Second // the session timeout

// inBubble runs f in virtual time, with a server of its own.
func inBubble(t *testing.T, f func(*testing.T, *zktest.Server, *session.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
		m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
			session.WithTimeout(long), session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		expect.NoError(t, err)
		defer m.Close()
		f(t, server, m)
	})
}

// A turn is kept for a session timeout after its listing at most, also if it was used since.
func TestKeptForATimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, m *session.Manager) {
		p := &process{Turns: turnsOn(t, m, "/a", func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 0, 6*time.Second) })}
		began := time.Now()
		giveBack(t, p.hold(t))
		time.Sleep(5 * time.Second)
		giveBack(t, p.hold(t))
		for p.in() == keeping {
			time.Sleep(time.Second / 10)
		}
		if passed := time.Since(began); passed < long-time.Second || passed > long+time.Second/2 {
			t.Errorf("kept for %v", passed)
		}
	})
}
