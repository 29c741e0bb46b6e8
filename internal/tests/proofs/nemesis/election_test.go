//go:build linux

package nemesis

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/elected"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ourElection is a candidate that leads once for each acquisition.
type ourElection struct {
	m      *session.Manager
	path   string
	random *rand.Rand
}

func (e ourElection) acquire(ctx context.Context) (hold, error) {
	t, err := elected.Acquire(ctx, e.m, e.path)
	if err != nil {
		return nil, err
	}
	return term{t, e.random.IntN(2) == 0}, nil
}

// term holds as long as the context of its Run's function is alive.
type term struct {
	of      *elected.Term
	resigns bool
}

func (t term) claim() claim                             { return claim{} }
func (t term) held() bool                               { return t.of.Err() == nil }
func (t term) token(ctx context.Context) (int64, error) { return t.of.Lease.Token(ctx) }

// release ends the term. An election does not say whether that is confirmed already.
func (t term) release(ctx context.Context) error {
	leave := t.of.Release
	if t.resigns {
		leave = t.of.Resign
	}
	if err := leave(ctx); !errors.Is(err, queue.ErrReleasePending) {
		return err
	}
	return nil
}
