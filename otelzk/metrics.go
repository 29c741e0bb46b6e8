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

	"github.com/turnstile-go/turnstile/session"
)

// requestBuckets are those of the conventions. lockBuckets go further, as waits and holds last longer.
var (
	requestBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}
	lockBuckets    = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
)

// instruments are the metrics of events. Neither paths nor labels are among their attributes, since the number of these
// has no bound. A user bounds the number of names.
type instruments struct {
	acquire, hold, requests                            metric.Float64Histogram
	acquisitions, releases, losses, transitions, ticks metric.Int64Counter
	jobDone                                            metric.Float64Gauge
	status                                             metric.Int64UpDownCounter
	attributes                                         []attribute.KeyValue // of all metrics
}

func newInstruments(m metric.Meter, all []attribute.KeyValue) *instruments {
	in := &instruments{
		acquire:      histogram(m, "zklock.acquire.duration", "Time from the call of Lock or TryLock until the lock is held.", lockBuckets),
		hold:         histogram(m, "zklock.hold.duration", "Time from the grant to the release.", lockBuckets),
		requests:     histogram(m, "db.client.operation.duration", "Duration of database client operations.", requestBuckets),
		acquisitions: counter(m, "zklock.acquisitions", "{acquisition}", "Calls of Lock and TryLock that have ended."),
		releases:     counter(m, "zklock.releases", "{release}", "Releases that have ended."),
		losses:       counter(m, "zklock.losses", "{loss}", "Locks that were lost while held."),
		transitions:  counter(m, "zklock.session.transitions", "{transition}", "Changes of the session's state."),
		ticks:        counter(m, "zklock.job.ticks", "{tick}", "What has become of the ticks of jobs, once for each call."),
		attributes:   all,
	}
	done, err := m.Float64Gauge("zklock.job.done.time", metric.WithUnit("s"), metric.WithDescription("Unix time of the last tick that is done."))
	in.jobDone = orElse[metric.Float64Gauge](done, err, noop.Float64Gauge{})
	state, err := m.Int64UpDownCounter("zklock.session.status", metric.WithUnit("{session}"), metric.WithDescription("1 for the state of the session, and 0 for the other states."))
	in.status = orElse[metric.Int64UpDownCounter](state, err, noop.Int64UpDownCounter{})
	for s := session.Connecting; s <= session.Closed; s++ {
		in.count(context.Background(), in.transitions, 0, attrState.String(s.String()))
		in.inState(s, 0)
	}
	return in
}

// inState adds n to the number of sessions in a state.
func (in *instruments) inState(s session.State, n int64) {
	in.status.Add(context.Background(), n, metric.WithAttributeSet(in.set(attrState.String(s.String()))))
}

func histogram(m metric.Meter, name, what string, buckets []float64) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(buckets...))
	return orElse[metric.Float64Histogram](h, err, noop.Float64Histogram{})
}

func counter(m metric.Meter, name, unit, what string) metric.Int64Counter {
	c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	return orElse[metric.Int64Counter](c, err, noop.Int64Counter{})
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

// set returns the attributes of all metrics and the given ones.
func (in *instruments) set(own ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(slices.Concat(own, in.attributes)...)
}

// record records the time since began.
func (in *instruments) record(ctx context.Context, h metric.Float64Histogram, began time.Time, own ...attribute.KeyValue) {
	if h.Enabled(ctx) {
		h.Record(ctx, time.Since(began).Seconds(), metric.WithAttributeSet(in.set(own...)))
	}
}

func (in *instruments) count(ctx context.Context, c metric.Int64Counter, n int64, own ...attribute.KeyValue) {
	if c.Enabled(ctx) {
		c.Add(ctx, n, metric.WithAttributeSet(in.set(own...)))
	}
}

// begin makes the counters of locks of one kind and name exist, before what they count can happen. A counter that appears
// with the value 1 has not grown, for a query such as Prometheus' increase.
func (in *instruments) begin(of series) {
	in.beginEach(in.acquisitions, attrOutcome, acquireOutcomes, of.with())
	in.beginEach(in.releases, attrOutcome, releaseOutcomes, of.with())
	in.beginEach(in.losses, semconv.ErrorTypeKey, lossReasons, of.with())
}

func (in *instruments) beginEach(c metric.Int64Counter, key attribute.Key, values []string, own []attribute.KeyValue) {
	for _, v := range values {
		in.count(context.Background(), c, 0, append(slices.Clip(own), key.String(v))...)
	}
}
