// Package asynq runs the scheduler of github.com/hibiken/asynq on one of many replicas, in an election.
//
// asynq has no interface for that: each Scheduler enqueues each task. A Scheduler cannot be started twice, so [Run] makes
// one for each term. The scheduler enqueues without a context. So Run puts a hook into its Redis client, which refuses all
// commands of a former leader, by the clock. A command that is on its way at that moment still arrives.
//
// An election does not know which tick was enqueued last. If the leader changes around a tick, the task is enqueued by
// both leaders, or by none. For the first case, asynq.Unique is not enough: it lets the second one pass once the first is
// done. For jobs that must run once, call Client.EnqueueContext in a job of package schedule, with asynq.TaskID of the
// name and the tick and with asynq.Retention, as folder cron does it without asynq.
package asynq

import (
	"context"
	"errors"
	"net"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/turnstile-go/turnstile/election"
)

// ErrNotLeader is the error of commands of a former leader.
var ErrNotLeader = errors.New("another replica leads")

// Run stands for election until ctx ends, and runs a scheduler for as long as this replica leads. register adds the tasks.
// The clients of Redis are made from options, which may have no hooks.
//
// Do not call Run or Shutdown of the scheduler in register. Its own Run waits for a signal of the operating system.
func Run(ctx context.Context, e *election.Election, options *redis.Options, o *asynq.SchedulerOpts, register func(*asynq.Scheduler) error) error {
	return e.Run(ctx, func(ctx context.Context) error {
		client := redis.NewClient(options)
		defer client.Close() // Shutdown leaves a client that it was given open, and says so in the log
		client.AddHook(term{ctx})
		s := asynq.NewSchedulerFromRedisClient(client, o)
		if err := register(s); err != nil {
			return err
		}
		if err := s.Start(); err != nil {
			return err
		}
		defer s.Shutdown() // waits for what is being enqueued
		<-ctx.Done()
		return nil
	})
}

// term refuses commands when a term is over.
type term struct{ ctx context.Context }

func (t term) check() error {
	if t.ctx.Err() != nil { // looks at the clock
		return errors.Join(ErrNotLeader, context.Cause(t.ctx))
	}
	return nil
}

func (t term) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := t.check(); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (t term) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := t.check(); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}

// DialHook changes nothing.
func (t term) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
