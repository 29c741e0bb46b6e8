//go:build linux

package nemesis

import (
	"context"
	"log/slog"
	"os"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// ours is this module's mutex.
type ours struct {
	m     *session.Manager
	mutex *zklock.Mutex
}

func newOurs(s *settings) (contender, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	m, err := session.Connect(context.Background(), s.servers, session.WithTimeout(s.timeout), session.WithLogger(log))
	if err != nil {
		return nil, err
	}
	mutex, err := zklock.New(m, s.path)
	return &ours{m, mutex}, err
}

func (o *ours) acquire(ctx context.Context) (hold, error) {
	lease, err := o.mutex.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return ourHold{lease}, nil
}

func (o *ours) close() { _ = o.m.Close() }

type ourHold struct{ lease *queue.Lease }

func (h ourHold) held() bool                               { return h.lease.Err() == nil }
func (h ourHold) token(ctx context.Context) (int64, error) { return h.lease.Token(ctx) }
func (h ourHold) release(ctx context.Context) error        { return h.lease.Release(ctx) }
