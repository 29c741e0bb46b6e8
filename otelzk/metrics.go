package otelzk

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// requestBuckets are those of the conventions. lockBuckets go further, as waits and holds last longer.
var (
	requestBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}
	lockBuckets    = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
)

// instruments are all metrics. Neither paths nor labels are among their attributes, since the number of these has no
// bound. A user bounds the number of names.
type instruments struct {
	acquire, hold, requests metric.Float64Histogram
	waiters, held           metric.Int64UpDownCounter
	losses, transitions     metric.Int64Counter
	outcomes, jobTicks      metric.Int64Counter  // of acquisitions, and of jobs
	attributes              []attribute.KeyValue // of all metrics
}

func newMeter(p metric.MeterProvider) metric.Meter {
	return p.Meter(ScopeName,
		metric.WithInstrumentationVersion(version()),
		metric.WithSchemaURL(semconv.SchemaURL))
}

func newInstruments(m metric.Meter, all []attribute.KeyValue) *instruments {
	return &instruments{
		acquire:     histogram(m, metricAcquire, "Time from the call of Lock or TryLock to its outcome.", lockBuckets),
		hold:        histogram(m, metricHold, "Time for which locks are held.", lockBuckets),
		requests:    histogram(m, metricRequest, "Duration of database client operations.", requestBuckets),
		waiters:     upDownCounter(m, metricWaiters, unitWaiters, "Calls of Lock that wait."),
		held:        upDownCounter(m, metricHeld, unitLocks, "Locks that are held."),
		outcomes:    counter(m, metricOutcomes, unitAcquisitions, "Calls of Lock and TryLock that have ended."),
		jobTicks:    counter(m, metricJobTicks, unitTicks, "What has become of the ticks of jobs, once for each call."),
		losses:      counter(m, metricLosses, unitLosses, "Locks that were lost while held."),
		transitions: counter(m, metricTransitions, unitTransitions, "Changes of the session's state."),
		attributes:  all,
	}
}

func histogram(m metric.Meter, name, what string, buckets []float64) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithUnit(unitSeconds),
		metric.WithDescription(what), metric.WithExplicitBucketBoundaries(buckets...))
	return orElse(h, err, metric.Float64Histogram(noop.Float64Histogram{}))
}

func upDownCounter(m metric.Meter, name, unit, what string) metric.Int64UpDownCounter {
	c, err := m.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	return orElse(c, err, metric.Int64UpDownCounter(noop.Int64UpDownCounter{}))
}

func counter(m metric.Meter, name, unit, what string) metric.Int64Counter {
	c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	return orElse(c, err, metric.Int64Counter(noop.Int64Counter{}))
}

// orElse returns none if an instrument was refused, and reports the refusal to OpenTelemetry's error
// handler.
func orElse[I any](instrument I, err error, none I) I {
	if err != nil {
		otel.Handle(err)
		return none
	}
	return instrument
}

// with returns the attributes of all metrics and the given ones, as an option.
func (in *instruments) with(own ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(slices.Concat(own, in.attributes)...))
}

// enter adds one to a counter until the returned function is called. If the counter was disabled at the
// time of enter, that function takes nothing off.
func (in *instruments) enter(ctx context.Context, c metric.Int64UpDownCounter, of series) (leave func()) {
	if !c.Enabled(ctx) {
		return func() {}
	}
	with := in.with(of.attributes()...)
	c.Add(ctx, 1, with)
	return func() { c.Add(ctx, -1, with) }
}

// observe records the duration of an acquisition or a hold.
func (in *instruments) observe(ctx context.Context, h metric.Float64Histogram, began time.Time, of series, end ending) {
	if h.Enabled(ctx) {
		h.Record(ctx, time.Since(began).Seconds(), in.with(of.with(end.attributes()...)...))
	}
}

// settle counts an acquisition that has ended, and records how long it took.
func (in *instruments) settle(ctx context.Context, began time.Time, of series, end ending) {
	in.observe(ctx, in.acquire, began, of, end)
	in.count(ctx, in.outcomes, 1, of.with(attribute.String(attrOutcome, end.outcome))...)
}

func (in *instruments) lose(ctx context.Context, of series, reason string) {
	in.count(ctx, in.losses, 1, of.with(attribute.String(attrErrorType, reason))...)
}

func (in *instruments) transition(state string) {
	in.count(context.Background(), in.transitions, 1, attribute.String(attrState, state))
}

func (in *instruments) count(ctx context.Context, c metric.Int64Counter, n int64, own ...attribute.KeyValue) {
	if c.Enabled(ctx) {
		c.Add(ctx, n, in.with(own...))
	}
}

// A counter that appears with the value 1 has not grown, for a query such as Prometheus' increase. So all counters exist
// before what they count can happen.

// begin makes the counters exist that are not of locks.
func (in *instruments) begin() {
	for _, s := range states {
		in.count(context.Background(), in.transitions, 0, attribute.String(attrState, s.String()))
	}
}

// beginSeries makes the counters of locks of one kind and name exist.
func (in *instruments) beginSeries(of series) {
	ctx, with := context.Background(), in.with(of.attributes()...)
	for _, outcome := range acquireOutcomes {
		in.count(ctx, in.outcomes, 0, of.with(attribute.String(attrOutcome, outcome))...)
	}
	for _, reason := range lossReasons {
		in.count(ctx, in.losses, 0, of.with(attribute.String(attrErrorType, reason))...)
	}
	in.waiters.Add(ctx, 0, with)
	in.held.Add(ctx, 0, with)
}

// beginJob makes the counters of jobs of one name exist.
func (in *instruments) beginJob(name string) {
	for _, outcome := range jobOutcomes {
		in.count(context.Background(), in.jobTicks, 0, jobAttributes(name, outcome)...)
	}
}

// What acquireEnding and jobOutcome return, and the reasons of losses.
var (
	acquireOutcomes = []string{outcomeAcquired, outcomeBusy, outcomeSettled, outcomeCanceled, outcomeTimeout, outcomeFailed}
	jobOutcomes     = []string{
		outcomeRan, outcomeFailed, outcomeDone, outcomeOvertaken, outcomeTriesUsedUp, outcomeBusy, outcomeSkipped,
		outcomeCanceled, outcomeTimeout, outcomeNotRun,
	}
	lossReasons = []string{errSessionExpired, errSessionUncertain, errSessionReplaced, errSessionSuspended, errNodeDeleted, errLost}
)
