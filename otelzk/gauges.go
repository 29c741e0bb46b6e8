package otelzk

import (
	"context"
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/turnstile-go/turnstile/session"
)

// gauges are the metrics that are read when a reader collects: the ages of the oldest hold and the oldest wait, and the
// states of sessions. All managers of one meter share them. If two callbacks observed the same attributes, OpenTelemetry
// would keep one of the two values, and a lock that hangs could be hidden by the other manager's locks.
type gauges struct {
	holds, waits metric.Float64ObservableGauge
	states       metric.Int64ObservableUpDownCounter
	registration metric.Registration // guarded by metered.mu

	mu  sync.Mutex // the callback takes it, within the SDK's own locks: nothing of OpenTelemetry is called under it
	all map[*live]struct{}
}

// metered has the gauges of each meter that a manager uses.
var metered = struct {
	mu sync.Mutex // the callback does not take it
	of map[any]*gauges
}{of: make(map[any]*gauges)}

// report adds l to the gauges of a meter until the returned function is called, which may be called again.
func report(m metric.Meter, l *live) (stop func()) {
	var key any = m
	if !reflect.ValueOf(m).Comparable() {
		key = l // it has gauges of its own
	}
	metered.mu.Lock()
	defer metered.mu.Unlock()
	g := metered.of[key]
	if g == nil {
		g = newGauges(m)
		metered.of[key] = g
	}
	g.set(l, true)
	return sync.OnceFunc(func() {
		metered.mu.Lock()
		defer metered.mu.Unlock()
		if left := g.set(l, false); left > 0 {
			return
		}
		delete(metered.of, key)
		if err := g.registration.Unregister(); err != nil {
			otel.Handle(err)
		}
	})
}

func newGauges(m metric.Meter) *gauges {
	g := &gauges{all: make(map[*live]struct{})}
	g.holds = gauge(m, metricOldestHold, "Age of the oldest hold. 0 if nothing is held.")
	g.waits = gauge(m, metricOldestWait, "Age of the oldest call of Lock that waits. 0 if none does.")
	states, err := m.Int64ObservableUpDownCounter(metricSession, metric.WithUnit(unitSessions),
		metric.WithDescription("1 for the state of the session, and 0 for the other states."))
	g.states = orElse(states, err, metric.Int64ObservableUpDownCounter(noop.Int64ObservableUpDownCounter{}))
	registered, err := m.RegisterCallback(g.collect, g.holds, g.waits, g.states)
	g.registration = orElse(registered, err, metric.Registration(noop.Registration{}))
	return g
}

func gauge(m metric.Meter, name, what string) metric.Float64ObservableGauge {
	g, err := m.Float64ObservableGauge(name, metric.WithUnit(unitSeconds), metric.WithDescription(what))
	return orElse(g, err, metric.Float64ObservableGauge(noop.Float64ObservableGauge{}))
}

// set adds or removes l, and returns how many there are.
func (g *gauges) set(l *live, in bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if in {
		g.all[l] = struct{}{}
	} else {
		delete(g.all, l)
	}
	return len(g.all)
}

// collect is the callback.
func (g *gauges) collect(_ context.Context, out metric.Observer) error {
	now, holds, waits, states := time.Now(), make(readings), make(readings), make(readings)
	g.mu.Lock()
	for l := range g.all {
		l.read(now, holds, waits, states)
	}
	g.mu.Unlock()
	for _, r := range holds {
		out.ObserveFloat64(g.holds, r.value, metric.WithAttributeSet(r.attributes))
	}
	for _, r := range waits {
		out.ObserveFloat64(g.waits, r.value, metric.WithAttributeSet(r.attributes))
	}
	for _, r := range states {
		out.ObserveInt64(g.states, int64(r.value), metric.WithAttributeSet(r.attributes))
	}
	return nil
}

// readings are the values of one gauge, of all managers.
type readings map[attribute.Distinct]*reading

type reading struct {
	attributes attribute.Set
	value      float64
}

func (rs readings) of(set attribute.Set) *reading {
	r := rs[set.Equivalent()]
	if r == nil {
		r = &reading{attributes: set}
		rs[set.Equivalent()] = r
	}
	return r
}

// states are those that a session can have.
var states = []session.State{session.Connecting, session.Connected, session.Suspended, session.Lost, session.Closed}
