package otelzk_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// made is for a constructor that must succeed.
func made[L any](t *testing.T) func(L, error) L {
	return func(l L, err error) L {
		t.Helper()
		must(t, err)
		return l
	}
}

// used takes locks, one after the other, and gives each back.
func used(t *testing.T, locks ...zklock.ContextLocker) {
	t.Helper()
	for _, l := range locks {
		lease, err := l.Acquire(patient(t))
		must(t, err)
		must(t, lease.Release(patient(t)))
	}
}

// named has for each kind of lock a function that uses such locks. Their name is the kind with "a " before it.
var named = map[string]func(t *testing.T, m *session.Manager, dir string){
	"mutex": func(t *testing.T, m *session.Manager, dir string) {
		mx, name := made[*zklock.Mutex](t), zklock.WithName("a mutex")
		used(t, mx(zklock.New(m, dir+"/plain", name)),
			mx(zklock.New(m, dir+"/local", name, zklock.WithLocalHandover(2))),
			mx(zklock.New(m, dir+"/kept", name, zklock.WithLazyRelease(long))))
		all := made[*zklock.MultiLock](t)(zklock.Multi(mx(zklock.New(m, dir+"/a", name)), mx(zklock.New(m, dir+"/b", name))))
		must(t, all.Lock(patient(t)))
		must(t, all.Unlock())
	},
	"read": func(t *testing.T, m *session.Manager, dir string) {
		used(t, made[*rwlock.RWMutex](t)(rwlock.New(m, dir, rwlock.WithName("a read"))).Reader())
	},
	"write": func(t *testing.T, m *session.Manager, dir string) {
		used(t, made[*rwlock.RWMutex](t)(rwlock.New(m, dir, rwlock.WithName("a write"))))
	},
	"semaphore": func(t *testing.T, m *session.Manager, dir string) {
		sem := made[*semaphore.Semaphore](t)(semaphore.New(m, dir, 5, semaphore.WithName("a semaphore")))
		lease, err := sem.AcquireN(patient(t), 3)
		must(t, err)
		must(t, lease.Release(patient(t)))
	},
	"election": func(t *testing.T, m *session.Manager, dir string) {
		e, over := made[*election.Election](t)(election.New(m, dir, election.WithName("a election"))), errors.New("over")
		if err := e.Run(patient(t), func(context.Context) error { return over }); !errors.Is(err, over) {
			t.Fatal(err)
		}
	},
	"own": func(t *testing.T, m *session.Manager, dir string) {
		first := func(queue.Node) queue.Policy { return queue.Policy{} }
		kind := &queue.Kind{Name: "own", Prefixes: []string{queue.PrefixLock}, Policy: first}
		q := made[*queue.Queue](t)(queue.New(m, dir))
		lease, err := q.Acquire(patient(t), queue.Request{Kind: kind, Name: "a own"})
		must(t, err)
		must(t, lease.Release(patient(t)))
	},
}

// The names of locks of each kind are on all of their spans and in all of their metrics.
func TestNames(t *testing.T) {
	tel, root := newTelemetry(), testserver.Path(t)
	m := connect(t, root+"/unused", tel, otelzk.New(tel.opts...)).m
	for kind, use := range named {
		use(t, m, root+"/"+kind)
	}
	used(t, made[*semaphore.Semaphore](t)(semaphore.New(m, root+"/curator", 1,
		semaphore.WithName("a gate"), semaphore.WithCuratorLayout())))
	kinds := slices.Sorted(maps.Keys(named))
	spans := map[string]int{}
	for _, s := range tel.settled(t) {
		kind, name := attr(s, "zklock.kind"), attr(s, "zklock.name")
		if kind == "" || name == "a gate" {
			continue
		}
		spans[kind]++
		if name != "a "+kind {
			t.Errorf("%s of a %s has the name %q", s.Name(), kind, name)
		}
	}
	if got := slices.Sorted(maps.Keys(spans)); !slices.Equal(got, kinds) {
		t.Errorf("spans of %q, want %q", got, kinds)
	}
	for _, kind := range kinds {
		of := []attribute.KeyValue{attribute.String("zklock.kind", kind), attribute.String("zklock.name", "a "+kind)}
		if tel.value(t, "zklock.acquisitions", append(of, outcome("acquired"))...) == 0 {
			t.Errorf("no acquisition of a %s", kind)
		}
		for _, metric := range []string{"zklock.acquire.duration", "zklock.hold.duration"} {
			if tel.count(t, metric, of...) == 0 {
				t.Errorf("no %s of a %s", metric, kind)
			}
		}
	}
	for _, kind := range []string{"gate", "semaphore"} { // the two of which Curator's semaphore consists
		of := []attribute.KeyValue{attribute.String("zklock.kind", kind), attribute.String("zklock.name", "a gate")}
		if tel.count(t, "zklock.hold.duration", of...) != 1 {
			t.Errorf("the %s of Curator's layout has no name", kind)
		}
	}
}

// Each name has series of its own, and locks without a name have another. None of them has a label.
func TestSeriesOfNames(t *testing.T) {
	c := newClient(t, directory(t))
	mx := made[*zklock.Mutex](t)
	invoice, report := zklock.WithName("invoice"), zklock.WithName("report")
	first, second := mx(zklock.New(c.m, directory(t), invoice)), mx(zklock.New(c.m, directory(t), invoice))
	ctx := queue.WithLabel(patient(t), "request 42")
	must(t, c.mx.Lock(ctx))
	must(t, first.Lock(ctx))
	must(t, second.Lock(ctx))
	must(t, mx(zklock.New(c.m, directory(t), report)).Lock(ctx))
	lost := background(func() error { return first.Lock(ctx) })
	c.started(t, "zklock watch", 0)

	type value struct{ held, waiters int64 }
	want := map[string]value{"": {held: 1}, "invoice": {held: 2, waiters: 1}, "report": {held: 1}}
	got := map[string]value{}
	_, metrics := c.collect(t)
	for name, set := range map[string]func(*value, int64){
		"zklock.held.count":   func(v *value, n int64) { v.held = n },
		"zklock.waiter.count": func(v *value, n int64) { v.waiters = n },
	} {
		for _, p := range metrics[name].(metricdata.Sum[int64]).DataPoints {
			of, _ := p.Attributes.Value("zklock.name")
			v := got[of.AsString()]
			set(&v, p.Value)
			got[of.AsString()] = v
			if p.Attributes.HasValue("zklock.label") {
				t.Errorf("%s has a label", name)
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("held and waited for: %v, want %v", got, want)
	}
	if n := len(metrics["zklock.hold.oldest"].(metricdata.Gauge[float64]).DataPoints); n != len(want) {
		t.Errorf("the oldest holds of %d names, want %d", n, len(want))
	}

	// The losses have the names too.
	c.expire(t)
	expired := attribute.String("error.type", "session_expired")
	zktest.Eventually(t, testserver.Patience, "the losses to be counted by name", func() bool {
		of := func(name string) int64 {
			return c.value(t, "zklock.losses", kind, expired, attribute.String("zklock.name", name))
		}
		return of("invoice") == 2 && of("report") == 1
	})
	if err := first.Unlock(); !errors.Is(err, session.ErrLost) {
		t.Error(err)
	}
	must(t, receive(t, "Lock", lost))
}

// The label of an acquisition is on its span, and on those of the hold and the release, whose context can be
// another. The span of a wait has the label of the holder.
func TestLabels(t *testing.T) {
	dir := directory(t)
	c, holder := newClient(t, dir), newClient(t, dir)
	lease, err := holder.mx.Acquire(queue.WithLabel(patient(t), "request 41"))
	must(t, err)
	if ok, err := c.mx.TryLock(queue.WithLabel(patient(t), "request 42")); ok || err != nil {
		t.Fatal(ok, err)
	}
	c.settled(t)
	result := background(func() error { return c.mx.Lock(queue.WithLabel(patient(t), "request 42")) })
	watch := c.started(t, "zklock watch", 0)
	c.knows(t, 2)
	must(t, lease.Release(patient(t)))
	must(t, receive(t, "Lock", result))
	c.unlock(t)
	holder.settled(t)
	for label, tel := range map[string]*telemetry{"request 41": holder.telemetry, "request 42": c.telemetry} {
		for _, name := range []string{"zklock lock", "zklock hold", "zklock unlock"} {
			if got := attr(tel.started(t, name, 0), "zklock.label"); got != label {
				t.Errorf("%s has the label %q, want %q", name, got, label)
			}
		}
	}
	if got := attr(c.started(t, "zklock trylock", 0), "zklock.label"); got != "request 42" {
		t.Errorf("zklock trylock has the label %q", got)
	}
	if got := attr(watch, "zklock.watched.label"); got != "request 41" {
		t.Errorf("the wait is for %q", got)
	}
}
