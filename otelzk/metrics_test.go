package otelzk_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var (
	kind     = attribute.String("zklock.kind", "mutex")
	ensemble = attribute.String("ensemble", "blue")
)

func outcome(o string) attribute.KeyValue { return attribute.String("zklock.outcome", o) }

// point is a point of a sum. Only its attributes matter.
func point(kv ...attribute.KeyValue) metricdata.DataPoint[int64] {
	return metricdata.DataPoint[int64]{Attributes: attribute.NewSet(append(kv, ensemble)...)}
}

func histogramPoint(kv ...attribute.KeyValue) metricdata.HistogramDataPoint[float64] {
	return metricdata.HistogramDataPoint[float64]{Attributes: attribute.NewSet(append(kv, ensemble)...)}
}

func histogram(points ...metricdata.HistogramDataPoint[float64]) metricdata.Histogram[float64] {
	return metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: points}
}

func sum(monotonic bool, points ...metricdata.DataPoint[int64]) metricdata.Sum[int64] {
	return metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: monotonic, DataPoints: points}
}

// value returns the value of the point that has all of kv, 0 if there is none.
func (tel *telemetry) value(tb testing.TB, name string, kv ...attribute.KeyValue) int64 {
	tb.Helper()
	_, metrics := tel.collect(tb)
	data, _ := metrics[name].(metricdata.Sum[int64])
	for _, p := range data.DataPoints {
		if hasAll(p.Attributes, kv) {
			return p.Value
		}
	}
	return 0
}

// count returns the number of measurements of the points of a histogram that have all of kv.
func (tel *telemetry) count(tb testing.TB, name string, kv ...attribute.KeyValue) uint64 {
	tb.Helper()
	_, metrics := tel.collect(tb)
	data, _ := metrics[name].(metricdata.Histogram[float64])
	var n uint64
	for _, p := range data.DataPoints {
		if hasAll(p.Attributes, kv) {
			n += p.Count
		}
	}
	return n
}

func hasAll(set attribute.Set, kv []attribute.KeyValue) bool {
	return !slices.ContainsFunc(kv, func(want attribute.KeyValue) bool {
		got, ok := set.Value(want.Key)
		return !ok || got.String() != want.Value.String()
	})
}

// All metrics of locks that are taken, tried, waited for and given up.
func TestMetrics(t *testing.T) {
	c := newClient(t, directory(t), otelzk.WithAttributes(ensemble))
	lease, err := c.mx.Acquire(patient(t))
	must(t, err)
	_, err = lease.Token(patient(t))
	must(t, err)
	if ok, err := c.mx.TryLock(patient(t)); ok || err != nil {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithCancel(patient(t))
	result := background(func() error { return c.mx.Lock(ctx) })
	c.started(t, "zklock watch", 0)
	if waiters, held := c.value(t, "zklock.waiter.count", kind), c.value(t, "zklock.held.count", kind); waiters != 1 || held != 1 {
		t.Errorf("%d wait and %d hold, want 1 and 1", waiters, held)
	}
	cancel()
	if err := receive(t, "Lock", result); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.started(t, "delete /", 0)
	must(t, lease.Release(patient(t)))
	c.settled(t)

	host, portText, err := net.SplitHostPort(c.proxy.Addr())
	must(t, err)
	port, err := strconv.Atoi(portText)
	must(t, err)
	request := func(op string) metricdata.HistogramDataPoint[float64] {
		return histogramPoint(attribute.String("db.system.name", "zookeeper"), attribute.String("db.namespace", "/"), attribute.String("db.operation.name", op),
			attribute.String("server.address", host), attribute.Int("server.port", port))
	}
	want := metricdata.ScopeMetrics{
		Scope: instrumentation.Scope{Name: otelzk.ScopeName, SchemaURL: semconv.SchemaURL},
		Metrics: []metricdata.Metrics{
			{Name: "zklock.acquire.duration", Unit: "s", Description: "Time from the call of Lock or TryLock until the lock is held.",
				Data: histogram(histogramPoint(kind))},
			{Name: "zklock.hold.duration", Unit: "s", Description: "Time from the grant to the release.", Data: histogram(histogramPoint(kind))},
			{Name: "zklock.waiter.count", Unit: "{waiter}", Description: "Calls of Lock that wait.", Data: sum(false, point(kind))},
			{Name: "zklock.held.count", Unit: "{lock}", Description: "Locks that are held.", Data: sum(false, point(kind))},
			{Name: "zklock.acquisitions", Unit: "{acquisition}", Description: "Calls of Lock and TryLock that have ended.",
				Data: sum(true, each(outcome, outcomes...)...)},
			{Name: "zklock.releases", Unit: "{release}", Description: "Releases that have ended.", Data: sum(true, each(outcome, releases...)...)},
			{Name: "zklock.losses", Unit: "{loss}", Description: "Locks that were lost while held.",
				Data: sum(true, each(reason, reasons...)...)},
			{Name: "zklock.hold.oldest", Unit: "s", Description: "Age of the oldest hold. 0 if nothing is held.", Data: gauge(point64(kind))},
			{Name: "zklock.wait.oldest", Unit: "s", Description: "Age of the oldest call of Lock that waits. 0 if none does.", Data: gauge(point64(kind))},
			{Name: "zklock.session.status", Unit: "{session}", Description: "1 for the state of the session, and 0 for the other states.",
				Data: sum(false, inStates()...)},
			{Name: "zklock.session.transitions", Unit: "{transition}", Description: "Changes of the session's state.",
				Data: sum(true, inStates()...)},
			{Name: "db.client.operation.duration", Unit: "s", Description: "Duration of database client operations.",
				Data: histogram(request("create"), request("getChildren"), request("getData"), request("delete"), request("sync"))},
		},
	}
	// The hook for the change to Connected runs in a goroutine of its own.
	zktest.Eventually(t, testserver.Patience, "the session's transition", func() bool {
		return c.value(t, "zklock.session.transitions", state("connected")) == 1
	})
	got, metrics := c.collect(t)
	want.Scope.Version = got.Scope.Version
	metricdatatest.AssertEqual(t, want, got, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars(), metricdatatest.IgnoreValue())

	for name, n := range map[string]uint64{"zklock.acquire.duration": 1, "zklock.hold.duration": 1} {
		if got := c.count(t, name); got != n {
			t.Errorf("%s has %d measurements, want %d", name, got, n)
		}
	}
	for _, name := range []string{"zklock.waiter.count", "zklock.held.count"} {
		if got := c.value(t, name, kind); got != 0 {
			t.Errorf("%s is %d in the end", name, got)
		}
	}
	for name, last := range map[string]float64{"zklock.acquire.duration": 300, "zklock.hold.duration": 300, "db.client.operation.duration": 10} {
		bounds := metrics[name].(metricdata.Histogram[float64]).DataPoints[0].Bounds
		if bounds[0] != .001 || bounds[len(bounds)-1] != last {
			t.Errorf("%s has buckets %v", name, bounds)
		}
	}
}

// A release is counted by what has become of it: confirmed within a second, later, after a loss, or refused.
func TestReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := newTelemetry()
		hooks := otelzk.New(tel.opts...)
		for _, c := range []struct {
			took time.Duration
			err  error
		}{
			{time.Second, nil}, {2 * time.Second, nil}, {0, queue.ErrReleasePending}, {0, session.ErrLost},
			{0, zk.ErrNoAuth}, {0, context.Canceled}, {0, session.ErrClosed},
		} {
			_, end := hooks.Release(t.Context(), t.Context(), session.HoldInfo{Kind: "mutex"})
			time.Sleep(c.took) //nolint:forbidigo // in a bubble
			end(c.err)
		}
		for of, want := range map[string]int64{"released": 2, "late": 2, "lost": 1, "failed": 2} {
			if n := tel.value(t, "zklock.releases", kind, outcome(of)); n != want {
				t.Errorf("%d %s, want %d", n, of, want)
			}
		}
	})
}

// A call that fails is counted with its reason.
func TestFailures(t *testing.T) {
	tel := newTelemetry()
	_, end := otelzk.New(tel.opts...).Acquire(t.Context(), session.AcquireInfo{Kind: "mutex"})
	end(session.AcquireResult{Err: zk.ErrNoAuth})
	if n := tel.value(t, "zklock.acquisitions", kind, outcome("failed"), reason("NOAUTH")); n != 1 {
		t.Errorf("%d failures", n)
	}
}

// A loss is counted, with its reason, and ends the hold.
func TestMetricsOfALoss(t *testing.T) {
	c := newClient(t, directory(t))
	lease, err := c.mx.Acquire(patient(t))
	must(t, err)
	c.expire(t)
	receive(t, "the loss", lease.Done())
	expired := attribute.String("error.type", "session_expired")
	zktest.Eventually(t, testserver.Patience, "the end of the hold, which is told after the loss", func() bool {
		return c.value(t, "zklock.held.count", kind) == 0
	})
	if n := c.count(t, "zklock.hold.duration"); n != 0 {
		t.Errorf("%d durations of holds that were released", n)
	}
	if n := c.value(t, "zklock.losses", kind, expired); n != 1 {
		t.Errorf("%d losses", n)
	}
	if err := lease.Release(patient(t)); !errors.Is(err, session.ErrLost) {
		t.Error(err)
	}
	lost := attribute.String("zklock.session.state", "lost")
	zktest.Eventually(t, testserver.Patience, "the transition to be counted", func() bool {
		return c.value(t, "zklock.session.transitions", lost) == 1
	})
}
