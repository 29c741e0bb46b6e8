package main

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/elected"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// elect leads for a term, which ends by Resign or by the return of its function. Or it asks who leads, and asks that
// candidate to resign.
func (w *worker) elect(ctx context.Context, p referee.Place) error {
	if w.rng.IntN(4) == 0 {
		return w.depose(ctx, p)
	}
	t, err := elected.Acquire(ctx, w.c.m, p.Path)
	if err != nil {
		return err
	}
	w.during(p, 1, "leader", func() bool { return t.Err() == nil }, t.Done())
	leave := t.Release
	if w.rng.IntN(2) == 0 {
		leave = t.Resign
	}
	if err := release(leave); !errors.Is(err, queue.ErrReleasePending) {
		return err
	}
	return nil // an election does not say whether the release is confirmed
}

// depose asks the leader to resign.
func (w *worker) depose(ctx context.Context, p referee.Place) error {
	e, err := election.New(w.c.m, p.Path)
	if err != nil {
		return err
	}
	leader, err := e.Leader(ctx)
	if err == nil {
		err = zklock.Revoke(ctx, w.c.m, leader.Path)
	}
	if errors.Is(err, election.ErrNoLeader) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, session.ErrUncertain) {
		return nil // it has gone meanwhile, or the reply was lost
	}
	if errors.Is(err, zklock.ErrNotRevocable) {
		return nil // a plain lock
	}
	return err
}
