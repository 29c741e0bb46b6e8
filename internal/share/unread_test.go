package share

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

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

// A server that takes the right to read the directory away does not tell of contenders that come. So a turn that is used again and
// again is given up when a session timeout has passed since its listing, and one that nobody uses as well.
func TestKeptForATimeoutWithoutTheRightToRead(t *testing.T) {
	for name, used := range map[string]bool{"used": true, "unused": false} {
		for what, open := range map[string]func(q *queue.Queue) *Turns{
			"mutex":   func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 0, longestKeep) },
			"readers": func(q *queue.Queue) *Turns { return NewReaders(q, reader, longestKeep) },
		} {
			t.Run(what+", "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, server *zktest.Server, m *session.Manager) {
					p := &process{Turns: turnsOn(t, m, "/a", open)}
					l := p.hold(t)
					node, began := l.Path(), time.Now()
					giveBack(t, l)
					operator, _, err := zk.Connect([]string{"127.0.0.1:2181"}, long, zk.WithLogInfo(false),
						zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
							return server.Dialer()(context.Background(), network, addr)
						}))
					expect.NoError(t, err)
					defer operator.Close()
					_, err = operator.SetACL("/a", zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
					expect.NoError(t, err)
					_, err = operator.Create("/a/__WRIT__", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
					expect.NoError(t, err)
					for {
						there, _, err := operator.Exists(node)
						expect.NoError(t, err)
						if !there {
							break
						}
						if passed := time.Since(began); passed > long+time.Second {
							t.Fatalf("kept after %v", passed)
						}
						time.Sleep(time.Second / 2)
						if !used {
							continue
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
						if l, err := p.Acquire(ctx, false); err == nil {
							giveBack(t, l)
						}
						cancel()
					}
					if passed := time.Since(began); passed < long-time.Second {
						t.Errorf("given up after %v: the test proves nothing", passed)
					}
				})
			})
		}
	}
}
