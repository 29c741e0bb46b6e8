package otelzk_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// oldest returns the value of a gauge, 0 if it is not there yet.
func (tel *telemetry) oldest(tb testing.TB, name string) float64 {
	tb.Helper()
	_, metrics := tel.collect(tb)
	data, _ := metrics[name].(metricdata.Gauge[float64])
	for _, p := range data.DataPoints {
		return p.Value
	}
	return 0
}

// rests waits until a gauge is 0.
func rests(t *testing.T, tel *telemetry, name string) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, name+" to be 0", func() bool { return tel.oldest(t, name) == 0 })
}

// busy waits until a gauge is not 0.
func busy(t *testing.T, tel *telemetry, name string) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, name+" to grow", func() bool { return tel.oldest(t, name) > 0 })
}

// do is a Do whose function ends with end. Before that, while it runs, it calls meanwhile in the test's goroutine.
func do(t *testing.T, c *client, meanwhile func(ctx context.Context), end func()) {
	t.Helper()
	inside, proceed, done := make(chan context.Context, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		_ = c.mx.Do(patient(t), func(ctx context.Context) error {
			inside <- ctx
			<-proceed
			end()
			return nil
		})
	}()
	ctx := receive(t, "the work", inside)
	busy(t, c.telemetry, "zklock.hold.oldest")
	meanwhile(ctx)
	close(proceed)
	receive(t, "the end of Do", done)
}

// However a hold ends, its age leaves the gauge.
func TestOldestHoldEnds(t *testing.T) {
	nothing := func(context.Context) {}
	for what, end := range map[string]func(t *testing.T, c *client){
		"Do returns":        func(t *testing.T, c *client) { do(t, c, nothing, func() {}) },
		"Do panics":         func(t *testing.T, c *client) { do(t, c, nothing, func() { panic("oops") }) },
		"Do ends by Goexit": func(t *testing.T, c *client) { do(t, c, nothing, runtime.Goexit) },
		"Do loses the lock": func(t *testing.T, c *client) {
			do(t, c, func(ctx context.Context) {
				c.expire(t)
				receive(t, "the loss", ctx.Done())
				rests(t, c.telemetry, "zklock.hold.oldest") // although the work goes on
			}, func() {})
		},
		"the node is deleted": func(t *testing.T, c *client) {
			lease, err := c.mx.Acquire(patient(t))
			must(t, err)
			_, err = lease.Token(patient(t))
			must(t, err)
			busy(t, c.telemetry, "zklock.hold.oldest")
			must(t, testserver.Admin(t).Delete(lease.Path(), -1))
			receive(t, "the loss", lease.Done())
		},
		"nobody has unlocked what was lost": func(t *testing.T, c *client) {
			must(t, c.mx.Lock(patient(t)))
			busy(t, c.telemetry, "zklock.hold.oldest")
			c.expire(t)
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := newClient(t, directory(t))
			end(t, c)
			rests(t, c.telemetry, "zklock.hold.oldest")
			if n := c.value(t, "zklock.held.count", kind); n != 0 {
				t.Errorf("%d held", n)
			}
		})
	}
}

// However a wait ends, its age leaves the gauge.
func TestOldestWaitEnds(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, c *client, ctx context.Context, cancel func(), holder *client){
		"granted": func(t *testing.T, c *client, ctx context.Context, _ func(), holder *client) {
			waiting := background(func() error { return c.mx.Lock(ctx) })
			busy(t, c.telemetry, "zklock.wait.oldest")
			holder.unlock(t)
			must(t, receive(t, "Lock", waiting))
			rests(t, c.telemetry, "zklock.wait.oldest") // although it holds
			c.unlock(t)
		},
		"cancelled": func(t *testing.T, c *client, ctx context.Context, cancel func(), _ *client) {
			waiting := background(func() error { return c.mx.Lock(ctx) })
			busy(t, c.telemetry, "zklock.wait.oldest")
			cancel()
			expect.Match(t, "Lock", receive(t, "Lock", waiting), context.Canceled)
		},
		"waited for long enough": func(t *testing.T, c *client, ctx context.Context, _ func(), _ *client) {
			expect.Match(t, "Lock", c.mx.Lock(queue.WithMaxWait(ctx, 50*time.Millisecond)), queue.ErrMaxWait)
		},
		"the policy panics": func(t *testing.T, c *client, ctx context.Context, _ func(), _ *client) {
			q, err := queue.New(c.m, c.mx.Path())
			must(t, err)
			broken := func(queue.Node) queue.Policy { panic("oops") }
			kind := &queue.Kind{Name: "mutex", Prefixes: []string{queue.PrefixLock}, Policy: broken}
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = q.Acquire(ctx, queue.Request{Kind: kind})
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := directory(t)
			c, holder := newClient(t, dir), newClient(t, dir)
			must(t, holder.mx.Lock(patient(t)))
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			end(t, c, ctx, cancel, holder)
			rests(t, c.telemetry, "zklock.wait.oldest")
			if n := c.value(t, "zklock.waiter.count", kind); n != 0 {
				t.Errorf("%d wait", n)
			}
		})
	}
}
