package otelzk

import (
	"container/list"
	"context"
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// live is what locks hold and wait for at present, for the metrics that are read when a reader collects. All managers of
// one meter share it. If each had a callback of its own, OpenTelemetry would keep one of two values with the same
// attributes, and a lock that hangs could be hidden by another manager's locks.
type live struct {
	oldestHold, oldestWait   metric.Float64ObservableGauge
	held, waiters, elections metric.Int64ObservableUpDownCounter

	mu  sync.Mutex // read takes it, within the SDK's own locks: the hooks call nothing of OpenTelemetry under it
	all map[attribute.Distinct]*current
}

// current is what the locks with the same attributes hold and wait for. live.mu guards it.
type current struct {
	*live
	attributes   attribute.Set
	election     bool
	holds, waits list.List      // of time.Time, the oldest in front
	candidates   map[string]int // of elections, by path
}

// lives has what the managers of each meter share.
var lives = struct {
	mu sync.Mutex // read does not take it
	of map[metric.Meter]*live
}{of: make(map[metric.Meter]*live)}

func liveOf(m metric.Meter) *live {
	if !reflect.ValueOf(m).Comparable() {
		return newLive(m)
	}
	lives.mu.Lock()
	defer lives.mu.Unlock()
	if lives.of[m] == nil {
		lives.of[m] = newLive(m)
	}
	return lives.of[m]
}

func newLive(m metric.Meter) *live {
	l := &live{
		oldestHold: gauge(m, "zklock.hold.oldest", "Age of the oldest hold. 0 if nothing is held."),
		oldestWait: gauge(m, "zklock.wait.oldest", "Age of the oldest call of Lock that waits. 0 if none does."),
		held:       upDownCounter(m, "zklock.held.count", "{lock}", "Locks that are held."),
		waiters:    upDownCounter(m, "zklock.waiter.count", "{waiter}", "Calls of Lock that wait."),
		elections:  upDownCounter(m, "zklock.election.count", "{election}", "Elections in which a candidate waits or leads."),
		all:        make(map[attribute.Distinct]*current),
	}
	if _, err := m.RegisterCallback(l.read, l.oldestHold, l.oldestWait, l.held, l.waiters, l.elections); err != nil {
		otel.Handle(err)
	}
	return l
}

func gauge(m metric.Meter, name, what string) metric.Float64ObservableGauge {
	g, err := m.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(what))
	return orElse[metric.Float64ObservableGauge](g, err, noop.Float64ObservableGauge{})
}

func upDownCounter(m metric.Meter, name, unit, what string) metric.Int64ObservableUpDownCounter {
	c, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	return orElse[metric.Int64ObservableUpDownCounter](c, err, noop.Int64ObservableUpDownCounter{})
}

// read is the callback.
func (l *live) read(_ context.Context, out metric.Observer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.all {
		with := metric.WithAttributeSet(c.attributes)
		out.ObserveFloat64(l.oldestHold, age(&c.holds), with)
		out.ObserveFloat64(l.oldestWait, age(&c.waits), with)
		out.ObserveInt64(l.held, int64(c.holds.Len()), with)
		out.ObserveInt64(l.waiters, int64(c.waits.Len()), with)
		if c.election {
			out.ObserveInt64(l.elections, int64(len(c.candidates)), with)
		}
	}
	return nil
}

// age returns the age of the first of some times in seconds, 0 if there is none.
func age(times *list.List) float64 {
	if first := times.Front(); first != nil {
		return time.Since(first.Value.(time.Time)).Seconds()
	}
	return 0
}

// of returns what the locks with these attributes hold and wait for, and whether they are new.
func (l *live) of(set attribute.Set) (c *current, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c = l.all[set.Equivalent()]
	if isNew = c == nil; isNew {
		kind, _ := set.Value(attrKind)
		c = &current{live: l, attributes: set, election: kind.AsString() == "election", candidates: make(map[string]int)}
		l.all[set.Equivalent()] = c
	}
	return c, isNew
}

// enter counts a hold, or a call that waits, until the returned function is called.
func (c *current) enter(path string, holds bool) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := &c.waits
	if holds {
		in = &c.holds
	}
	at := in.PushBack(time.Now()) // under the lock, so that the list is in order of time
	if c.election {
		c.candidates[path]++
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		in.Remove(at)
		if c.candidates[path]--; c.candidates[path] <= 0 {
			delete(c.candidates, path)
		}
	}
}
