// Package cron runs jobs of github.com/robfig/cron/v3 on one of many replicas.
//
// The library has no interface for a lock. Its jobs have no context, and are not told for which time they run. [Add] asks
// the cron for that time, which is the tick of package schedule. The context of the function ends when the lock of the job
// is lost, so work goes on after a loss only if it does not look at its context. A store can refuse such work by the
// fencing token (queue.LeaseFrom).
//
// Two specs name ticks that replicas do not share:
//
//   - "@every 1h" counts from the start of each process. Add refuses it.
//   - "0 9 * * *" is nine o'clock where the process is. Use cron.WithLocation in all replicas, or a spec with CRON_TZ.
//
// Shutdown: cancel the context of Add, wait for the context that Stop of the cron returns, and close the manager.
package cron

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/turnstile-go/turnstile/schedule"
)

// Parser reads specs of five fields, and descriptors such as @daily. It is the default of the library.
var Parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Add has one of the replicas call f at each tick of the spec. A tick is left out while a replica is at the one before. ctx
// ends the functions under way, and no more are called then. report is told what became of each tick, in all replicas.
//
// To make up for ticks at which no replica was there, call job.CatchUp with Next of the schedule in place of TryRun.
func Add(
	ctx context.Context, c *cron.Cron, p cron.ScheduleParser, spec string, job *schedule.Job,
	f func(ctx context.Context, tick time.Time) error, report func(tick time.Time, o schedule.Outcome, err error),
) (cron.EntryID, error) {
	times, err := p.Parse(spec)
	if err != nil {
		return 0, err
	}
	if _, fromStart := times.(cron.ConstantDelaySchedule); fromStart {
		return 0, fmt.Errorf("%q gives each replica ticks of its own", spec)
	}
	entry := make(chan cron.EntryID, 1) // the first tick can come before Schedule returns
	id := c.Schedule(times, cron.FuncJob(func() {
		id := <-entry
		entry <- id
		tick := c.Entry(id).Prev // when it should have run, not when it does
		outcome, err := job.TryRun(ctx, tick, func(ctx context.Context) error { return f(ctx, tick) })
		report(tick, outcome, err)
	}))
	entry <- id
	return id, nil
}
