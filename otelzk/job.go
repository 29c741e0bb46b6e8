package otelzk

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/turnstile-go/turnstile/session"
)

// job is the hook for what has become of ticks of jobs.
func (o *observer) job(ctx context.Context, j session.JobInfo) {
	if j.Outcome == "" {
		o.instruments.beginJob(j.Name)
		return
	}
	o.instruments.count(ctx, o.instruments.jobTicks, int64(j.Ticks), jobAttributes(j.Name, jobOutcome(j))...)
}

func jobAttributes(name, outcome string) []attribute.KeyValue {
	kv := make([]attribute.KeyValue, 0, 8) // room for those of all metrics
	if name != "" {
		kv = append(kv, attribute.String(attrName, name))
	}
	return append(kv, attribute.String(attrOutcome, outcome))
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
