package otelzk

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/turnstile-go/turnstile/session"
)

// live is what one manager holds and waits for at present, and the state of its session.
type live struct {
	attributes []attribute.KeyValue // of all metrics

	mu    sync.Mutex
	state session.State
	ages  map[series]*ages
}

// ages are the times since when locks of one kind and name are held and waited for.
type ages struct {
	attributes   attribute.Set
	holds, waits list.List // of time.Time, the oldest in front
}

func newLive(all []attribute.KeyValue) *live {
	return &live{attributes: all, ages: make(map[series]*ages)}
}

// with returns attributes and those of all metrics.
func (l *live) with(own ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(slices.Concat(own, l.attributes)...)
}

// begin makes a series known. It reports whether the series was not known before.
func (l *live) begin(of series) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.ages[of] != nil
	l.agesLocked(of)
	return !known
}

func (l *live) agesLocked(of series) *ages {
	if l.ages[of] == nil {
		l.ages[of] = &ages{attributes: l.with(of.attributes()...)}
	}
	return l.ages[of]
}

// hold counts the age of a hold until the returned function is called.
func (l *live) hold(of series) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.countLocked(&l.agesLocked(of).holds)
}

// wait is hold for a call that waits.
func (l *live) wait(of series) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.countLocked(&l.agesLocked(of).waits)
}

func (l *live) countLocked(in *list.List) (end func()) {
	at := in.PushBack(time.Now()) // under the lock, so that the list is in order of time
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		in.Remove(at)
	}
}

// enter sets the state of the session.
func (l *live) enter(s session.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}

// read adds what there is to the readings of all managers: the oldest of the ages, and the number of the states.
func (l *live) read(now time.Time, holds, waits, sessions readings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.ages {
		hold, wait := holds.of(k.attributes), waits.of(k.attributes)
		hold.value = max(hold.value, oldest(&k.holds, now))
		wait.value = max(wait.value, oldest(&k.waits, now))
	}
	for _, s := range states {
		r := sessions.of(l.with(attribute.String(attrState, s.String())))
		if s == l.state {
			r.value++
		}
	}
}

func oldest(times *list.List, now time.Time) float64 {
	first := times.Front()
	if first == nil {
		return 0
	}
	return now.Sub(first.Value.(time.Time)).Seconds()
}
