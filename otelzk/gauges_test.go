package otelzk_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var (
	reasons    = []string{"session_expired", "session_uncertain", "session_replaced", "session_suspended", "node_deleted", "lost"}
	outcomes   = []string{"acquired", "busy", "settled", "canceled", "timeout", "failed"}
	releases   = []string{"released", "late", "lost", "failed"}
	stateNames = []string{"connecting", "connected", "suspended", "lost", "closed"}
)

func state(s string) attribute.KeyValue { return attribute.String("zklock.session.state", s) }

func reason(r string) attribute.KeyValue { return attribute.String("error.type", r) }

// each returns a point for mutexes with each of the values.
func each(attr func(string) attribute.KeyValue, values ...string) (points []metricdata.DataPoint[int64]) {
	for _, v := range values {
		points = append(points, point(kind, attr(v)))
	}
	return points
}

func inStates() (points []metricdata.DataPoint[int64]) {
	for _, s := range stateNames {
		points = append(points, point(state(s)))
	}
	return points
}

func gauge(points ...metricdata.DataPoint[float64]) metricdata.Gauge[float64] {
	return metricdata.Gauge[float64]{DataPoints: points}
}

func point64(kv ...attribute.KeyValue) metricdata.DataPoint[float64] {
	return metricdata.DataPoint[float64]{Attributes: attribute.NewSet(append(kv, ensemble)...)}
}

// zeros requires that the metric has a point with each value of an attribute, and that all are 0.
func (tel *telemetry) zeros(tb testing.TB, name string, attr func(string) attribute.KeyValue, values []string) {
	tb.Helper()
	_, metrics := tel.collect(tb)
	data, _ := metrics[name].(metricdata.Sum[int64])
	for _, v := range values {
		n := 0
		for _, p := range data.DataPoints {
			if hasAll(p.Attributes, []attribute.KeyValue{attr(v)}) {
				n++
				if p.Value != 0 {
					tb.Errorf("%s is %d for %s before anything happened", name, p.Value, v)
				}
			}
		}
		if n != 1 {
			tb.Errorf("%s has %d points for %s, want 1", name, n, v)
		}
	}
}

// Counters are there with 0 before the first event. A query such as Prometheus' increase sees no event in a series that
// begins with 1.
func TestCountersBeginAtZero(t *testing.T) {
	tel := newTelemetry()
	hooks := otelzk.New(tel.opts...)
	tel.zeros(t, "zklock.session.transitions", state, stateNames)
	c := connect(t, directory(t), tel, hooks)
	create := c.proxy.HoldRequest(zktest.On(zktest.OpCreate, c.mx.Path()))
	locked := background(func() error { return c.mx.Lock(patient(t)) })
	c.started(t, "create /", 0)
	tel.zeros(t, "zklock.losses", reason, reasons)
	tel.zeros(t, "zklock.acquisitions", outcome, outcomes)
	tel.zeros(t, "zklock.releases", outcome, releases)
	create.Release()
	must(t, receive(t, "Lock", locked))
	c.unlock(t)
	for _, o := range outcomes {
		if got, want := c.value(t, "zklock.acquisitions", kind, outcome(o)) == 1, o == "acquired"; got != want {
			t.Errorf("acquisitions with the outcome %s: %v", o, got)
		}
	}
}

// The metric of the state has a point for each state. Its values add up to the number of managers that are not closed.
func TestSessionStatus(t *testing.T) {
	tel := newTelemetry()
	status := func(s string) int64 { return tel.value(t, "zklock.session.status", state(s)) }
	hooks := otelzk.New(tel.opts...)
	if n := status("connecting"); n != 1 {
		t.Errorf("%d sessions are connecting before there is a manager", n)
	}
	a := connect(t, directory(t), tel, hooks)
	b := connect(t, directory(t), tel, otelzk.New(tel.opts...))
	zktest.Eventually(t, testserver.Patience, "two sessions", func() bool { return status("connected") == 2 && status("connecting") == 0 })
	tel.zeros(t, "zklock.session.status", state, []string{"connecting", "suspended", "lost", "closed"})

	a.proxy.Refuse(true)
	a.proxy.Disconnect()
	zktest.Eventually(t, testserver.Patience, "an outage", func() bool { return status("suspended") == 1 && status("connected") == 1 })
	a.proxy.Refuse(false)
	a.m.Close()
	b.m.Close()
	zktest.Eventually(t, testserver.Patience, "the sessions to end", func() bool { return status("connected")+status("suspended") == 0 })
	tel.zeros(t, "zklock.session.status", state, stateNames)
}

// The managers of one meter add up, and the older of two holds is the one that shows.
func TestSeveralManagers(t *testing.T) {
	tel := newTelemetry()
	a, b := otelzk.New(tel.opts...), otelzk.New(tel.opts...)
	of := session.HoldInfo{Kind: "mutex"}
	endA := a.Hold(t.Context(), of)
	zktest.Eventually(t, testserver.Patience, "the hold to age", func() bool { return tel.oldest(t, "zklock.hold.oldest") > 0.01 })
	endB := b.Hold(t.Context(), of)
	if n, age := tel.value(t, "zklock.held.count", kind), tel.oldest(t, "zklock.hold.oldest"); n != 2 || age <= 0.01 {
		t.Errorf("%d held, the oldest for %v s", n, age)
	}
	endB(nil)
	endA(nil)
	if n := tel.value(t, "zklock.held.count", kind); n != 0 {
		t.Errorf("%d held in the end", n)
	}
}

// The number of elections is that of paths in which a candidate waits or leads, whatever their names.
func TestElectionCount(t *testing.T) {
	tel := newTelemetry()
	hooks := otelzk.New(tel.opts...)
	count := func(want int64) {
		t.Helper()
		if n := tel.value(t, "zklock.election.count", attribute.String("zklock.name", "shard")); n != want {
			t.Errorf("%d elections, want %d", n, want)
		}
	}
	var ends []func()
	for _, path := range []string{"/a", "/b", "/b"} {
		ctx, granted := hooks.Acquire(t.Context(), session.AcquireInfo{Kind: "election", Name: "shard", Path: path})
		over := hooks.Hold(ctx, session.HoldInfo{Kind: "election", Name: "shard", Path: path})
		granted(session.AcquireResult{})
		ends = append(ends, func() { over(nil) })
	}
	count(2)
	ends[1]()
	count(2)
	ends[2]()
	count(1)
	ends[0]()
	count(0)
	hooks.Hold(t.Context(), session.HoldInfo{Kind: "mutex"})(nil)
	if _, metrics := tel.collect(t); len(metrics["zklock.election.count"].(metricdata.Sum[int64]).DataPoints) != 1 {
		t.Error("mutexes are counted too")
	}
}
