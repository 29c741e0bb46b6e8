package otelzk_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/zklock"
)

// A counter tells for each job what has become of its ticks. It begins at 0, with the job.
func TestJobs(t *testing.T) {
	tel, path := newTelemetry(), testserver.Path(t)
	m := connect(t, path+"/unused", tel, otelzk.New(tel.opts...)).m
	job := made[*schedule.Job](t)(schedule.New(m, path, schedule.WithName("report"), schedule.WithMaxTries(1)))
	count := func(of string) int64 {
		return tel.value(t, "zklock.job.ticks", attribute.String("zklock.name", "report"), outcome(of))
	}
	_, metrics := tel.collect(t)
	if begun, _ := metrics["zklock.job.ticks"].(metricdata.Sum[int64]); len(begun.DataPoints) != 10 {
		t.Errorf("%d counters of the job, want 10", len(begun.DataPoints))
	}
	ctx := patient(t)
	tick := func(n int) time.Time { return time.Date(1999, 1, 1, n, 0, 0, 0, time.UTC) }
	works := func(context.Context) error { return nil }
	run := func(ctx context.Context, n int, f func(context.Context) error) { _, _ = job.Run(ctx, tick(n), f) }
	run(ctx, 1, works)
	run(ctx, 1, works)
	run(ctx, 0, works)
	run(ctx, 2, func(ctx context.Context) error {
		_, _ = job.TryRun(ctx, tick(3), works)
		return errors.New("out of paper")
	})
	run(ctx, 2, works)
	run(ctx, 3, nil)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	run(gone, 3, works)
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	run(late, 3, works)
	hourly := func(tick time.Time) time.Time { return tick.Add(time.Hour) }
	_, _ = job.CatchUp(ctx, tick(4), hourly, func(context.Context, time.Time) error { return nil })
	_, metrics = tel.collect(t)
	done, _ := metrics["zklock.job.done.time"].(metricdata.Gauge[float64])
	if len(done.DataPoints) != 1 || done.DataPoints[0].Value != float64(tick(4).Unix()) {
		t.Errorf("the last tick that is done: %+v, want that of %v", done.DataPoints, tick(4))
	}
	for of, want := range map[string]int64{
		"ran": 3, "failed": 1, "done": 1, "overtaken": 1, "tries_used_up": 1, "busy": 1, "skipped": 1, "not_run": 1,
		"canceled": 1, "timeout": 1,
	} {
		if got := count(of); got != want {
			t.Errorf("%s: %d, want %d", of, got, want)
		}
	}
}

// A replica that waits until another one has begun a tick that is not tried again does not count as one that was cancelled.
// The metrics of the job's lock have the name of the job.
func TestSettledWait(t *testing.T) {
	path, tick := testserver.Path(t), time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	tel := newTelemetry()
	m := connect(t, path+"/unused", tel, otelzk.New(tel.opts...)).m
	second := made[*schedule.Job](t)(schedule.New(m, path, schedule.WithName("report"), schedule.WithMaxTries(1)))
	first := made[*schedule.Job](t)(schedule.New(newClient(t, path+"/unused").m, path, schedule.WithMaxTries(1)))
	gate := newClient(t, path+"/lock")
	must(t, gate.mx.Lock(patient(t)))
	over := make(chan struct{})
	ran := background(func() error {
		_, err := first.Run(patient(t), tick, func(context.Context) error { <-over; return nil })
		return err
	})
	testserver.WaitChildren(t, path+"/lock", 2)
	waits := background(func() error {
		defer close(over)
		got, err := second.Run(patient(t), tick, func(context.Context) error { return nil })
		if got != schedule.TriesUsedUp {
			t.Error(got)
		}
		return err
	})
	testserver.WaitChildren(t, path+"/lock", 3)
	must(t, gate.mx.Unlock())
	must(t, <-waits)
	must(t, <-ran)
	of := []attribute.KeyValue{attribute.String("zklock.kind", "mutex"), attribute.String("zklock.name", "report")}
	for what, want := range map[string]int64{"settled": 1, "canceled": 0, "acquired": 0} {
		if got := tel.value(t, "zklock.acquisitions", append(of, outcome(what))...); got != want {
			t.Errorf("%d acquisitions %s, want %d", got, what, want)
		}
	}
	for _, s := range tel.settled(t) {
		if s.Name() == "zklock lock" && attr(s, "zklock.outcome") != "settled" {
			t.Errorf("%s is %q", s.Name(), attr(s, "zklock.outcome"))
		}
	}
}

// The cancellation of a caller is one, also of a lock whose context has a cause.
func TestCancelledWait(t *testing.T) {
	c := newClient(t, testserver.Path(t))
	must(t, c.mx.Lock(patient(t)))
	other := made[*zklock.Mutex](t)(zklock.New(c.m, c.mx.Path()))
	ctx, cancel := context.WithCancelCause(patient(t))
	cancel(errors.New("the tick is not open any more"))
	if err := other.Lock(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	of := attribute.String("zklock.kind", "mutex")
	ctx, cancel = context.WithCancelCause(patient(t))
	over := background(func() error { return other.Lock(ctx) })
	testserver.WaitChildren(t, c.mx.Path(), 2)
	cancel(errors.New("the tick is not open any more"))
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := c.value(t, "zklock.acquisitions", of, outcome("canceled")); got != 1 {
		t.Errorf("%d cancelled", got)
	}
	must(t, c.mx.Unlock())
}
