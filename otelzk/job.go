package otelzk

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/turnstile-go/turnstile/session"
)

// job is the hook for what has become of ticks of jobs.
func (o *observer) job(ctx context.Context, j session.JobInfo) {
	in, outcome := o.instruments, jobOutcome(j)
	own := make([]attribute.KeyValue, 0, 2)
	if j.Name != "" {
		own = append(own, attrName.String(j.Name))
	}
	if j.Outcome == "" { // by schedule.New
		in.beginEach(in.ticks, attrOutcome, jobOutcomes, own)
		return
	}
	if outcome == outcomeRan || outcome == outcomeDone {
		in.jobDone.Record(ctx, float64(j.Tick.UnixMilli())/1000, metric.WithAttributeSet(in.set(own...)))
	}
	in.count(ctx, in.ticks, int64(j.Ticks), append(own, attrOutcome.String(outcome))...)
}

// jobOutcome is the outcome of a tick. Of a tick that was not run, it tells a caller that has gone from other errors.
func jobOutcome(j session.JobInfo) string {
	switch {
	case j.Outcome == outcomeRan && j.Err != nil:
		return outcomeFailed
	case j.Outcome != outcomeNotRun:
		return j.Outcome
	}
	if end := partEnding(j.Err); end.outcome != outcomeFailed {
		return end.outcome
	}
	return outcomeNotRun
}
