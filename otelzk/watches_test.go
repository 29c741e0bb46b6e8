package otelzk_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zktest"
)

// linksTo requires that a span is linked to the others, in this order, and to nothing else.
func linksTo(t *testing.T, s sdktrace.ReadOnlySpan, others ...sdktrace.ReadOnlySpan) {
	t.Helper()
	var got, want []trace.SpanID
	for _, l := range s.Links() {
		got = append(got, l.SpanContext.SpanID())
	}
	for _, other := range others {
		want = append(want, other.SpanContext().SpanID())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s is linked to %v, want %v", describe(s), got, want)
	}
}

// When the holder hands the lock on to the waiter between it and another waiter, the wait of the other is linked to the new
// holder, and its Lock to both holders.
func TestWatchAfterOneHasLeft(t *testing.T) {
	dir := directory(t)
	middle, last := newClient(t, dir), newClient(t, dir)
	holder, wait, _ := contend(t, middle, dir)
	result := background(func() error { return last.mx.Lock(patient(t)) })
	first := last.started(t, "zklock watch", 0)
	last.knows(t, 2)
	holder.unlock(t)
	must(t, wait())
	second := last.started(t, "zklock watch", 1)
	last.knows(t, 3)
	if first.EndTime().IsZero() || first.EndTime().After(second.StartTime()) || failed(first) {
		t.Errorf("the first wait ended at %v, the second began at %v", first.EndTime(), second.StartTime())
	}
	middle.unlock(t)
	must(t, receive(t, "Lock", result))
	last.unlock(t)
	was, is := holder.started(t, "zklock lock", 0), middle.started(t, "zklock lock", 0)
	linksTo(t, first, was)
	linksTo(t, second, is)
	linksTo(t, last.started(t, "zklock lock", 0), was, is)
	sameTree(t, last.tree(t, nil), `
zklock lock mutex acquired position=2 attempts=1 links=2
  create / CLIENT lock-
  getChildren / CLIENT .
  getData / CLIENT lock-0000000002
  getData / CLIENT lock-0000000000
  getData / CLIENT lock-0000000001
  zklock watch lock-0000000000 links=1
  zklock watch lock-0000000001 links=1
zklock hold mutex released lock-0000000002 links=1
zklock unlock mutex released lock-0000000002 links=1
  delete / CLIENT lock-0000000002
`)
}

// A waiter that watches only the last of many does not know the holder. Its wait is linked to the one before it, and its
// Lock to nobody. The Lock of the one before it leads to the holder.
func TestWatchFarFromTheHolder(t *testing.T) {
	dir := directory(t)
	holder := newClient(t, dir)
	must(t, holder.mx.Lock(patient(t)))
	var waiters []*client
	var leave []func()
	for n := range 3 {
		c := newClient(t, dir)
		ctx, cancel := context.WithCancel(patient(t))
		result := background(func() error { return c.mx.Lock(ctx) })
		leave = append(leave, func() {
			cancel()
			if err := receive(t, "Lock", result); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		c.started(t, "zklock watch", 0)
		c.knows(t, min(2+n, 3)) // its own node, and one or two that are ahead
		waiters = append(waiters, c)
	}
	for _, f := range slices.Backward(leave) {
		f()
	}
	held, middle, last := holder.started(t, "zklock lock", 0), waiters[1], waiters[2]
	middle.settled(t)
	last.settled(t)
	linksTo(t, middle.started(t, "zklock watch", 0), held)
	linksTo(t, middle.started(t, "zklock lock", 0), held)
	linksTo(t, last.started(t, "zklock watch", 0), middle.started(t, "zklock lock", 0))
	linksTo(t, last.started(t, "zklock lock", 0))
	holder.unlock(t)
}

// A contender for a semaphore watches many nodes. A few of these requests have spans, and all of them are measured.
func TestManyWatches(t *testing.T) {
	const limit, most = 30, 10
	dir := directory(t)
	holder, c := newClient(t, dir), newClient(t, dir)
	held, err := semaphore.New(holder.m, dir, limit)
	must(t, err)
	var leases []*queue.Lease
	for range limit {
		lease, err := held.Acquire(patient(t))
		must(t, err)
		leases = append(leases, lease)
	}
	sem, err := semaphore.New(c.m, dir, limit)
	must(t, err)
	result := background(func() error {
		lease, err := sem.Acquire(patient(t))
		if err != nil {
			return err
		}
		return lease.Release(context.Background())
	})
	watch := c.started(t, "zklock watch", 0)
	if got := attr(watch, "zklock.watched.count"); got != strconv.Itoa(limit) {
		t.Errorf("%s nodes are watched, want %d", got, limit)
	}
	const asked = limit + 2 // also for its own node, and for the limit
	zktest.Eventually(t, testserver.Patience, "all requests to be measured", func() bool {
		return c.count(t, "db.client.operation.duration", attribute.String("db.operation.name", "getData")) == asked
	})
	spans := 0
	for _, s := range c.spans.Started() {
		if s.Name() == "getData /" {
			spans++
		}
	}
	if spans == 0 || spans > most {
		t.Errorf("%d spans of %d requests, want at most %d", spans, asked, most)
	}
	for _, lease := range leases {
		must(t, lease.Release(patient(t)))
	}
	must(t, receive(t, "Acquire", result))
	c.started(t, "delete /", 0)
}
