package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// lead ships orders for as long as this replica is the leader.
func (s *service) lead(ctx context.Context) error {
	term, err := election.Term(ctx)
	if err != nil {
		return err
	}
	slog.Info("this replica ships the orders", "url", s.url, "term", term)
	look := time.NewTicker(s.shipEvery)
	defer look.Stop()
	for {
		// fence.ErrStale: another replica leads already, and this one has not noticed yet.
		if err := s.ship(ctx, term, s.shipping.Path()); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// termEnd is called after each term, when another replica can lead. The replica campaigns again after a term that has
// failed too, for example because the database was locked: Run waits before that, longer each time.
func termEnd(err error) error {
	if err != nil && !errors.Is(err, session.ErrLost) {
		slog.Warn("shipping has failed", "err", err)
	}
	return nil
}

// cron runs the job at each tick, on one of the replicas.
func (s *service) cron(ctx context.Context) error {
	for tick := time.Now().Truncate(s.reportEvery).Add(s.reportEvery); ; {
		select {
		case <-time.After(time.Until(tick)):
		case <-ctx.Done():
			return nil
		}
		// After the next tick, this one is not worth running any more.
		next := tick.Add(s.reportEvery)
		job, cancel := context.WithDeadline(ctx, next)
		outcome, err := s.reports.Run(job, tick, func(ctx context.Context) error {
			lease, _ := queue.LeaseFrom(ctx)
			token, err := lease.Token(ctx)
			if err != nil {
				return err
			}
			return s.makeReport(ctx, token, s.reports.Path(), tick)
		})
		cancel()
		slog.Debug("report", "tick", tick, "outcome", outcome, "err", err)
		if now := time.Now().Truncate(s.reportEvery); next.Before(now) {
			next = now // this process stood still
		}
		tick = next
	}
}
