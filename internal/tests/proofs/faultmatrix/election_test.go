package faultmatrix

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/elected"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// unlessPending returns the error of a release, or nil if the release is certain. An election does not say whether it is
// confirmed.
func unlessPending(err error) error {
	if errors.Is(err, queue.ErrReleasePending) {
		return nil
	}
	return err
}

// term is the hold of a candidate that leads.
type term struct {
	lease
	of      *elected.Term
	resigns bool
}

func candidate(ctx context.Context, m *session.Manager, path string) (hold, error) {
	return campaign(ctx, m, path, false)
}

func resigner(ctx context.Context, m *session.Manager, path string) (hold, error) {
	return campaign(ctx, m, path, true)
}

func campaign(ctx context.Context, m *session.Manager, path string, resigns bool) (hold, error) {
	t, err := elected.Acquire(ctx, m, path)
	if err != nil {
		return nil, err
	}
	return term{lease{t.Lease}, t, resigns}, nil
}

func (t term) Err() error            { return t.of.Err() }
func (t term) Done() <-chan struct{} { return t.of.Done() }

func (t term) Release(ctx context.Context) error {
	if t.resigns {
		return t.of.Resign(ctx)
	}
	return t.of.Release(ctx)
}
