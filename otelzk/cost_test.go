package otelzk_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

func cycle(tb testing.TB, mx *zklock.Mutex, n int) time.Duration {
	tb.Helper()
	began := time.Now()
	for range n {
		lease, err := mx.Acquire(context.Background())
		must(tb, err)
		must(tb, lease.Release(context.Background()))
	}
	return time.Since(began)
}

// mutex returns a mutex of a session with the given hooks.
func mutex(tb testing.TB, hooks *session.Trace) *zklock.Mutex {
	tb.Helper()
	opts := []session.Option{session.WithTimeout(long)}
	if hooks != nil {
		opts = append(opts, session.WithTrace(*hooks))
	}
	m := testserver.Connect(tb, testserver.Server(tb).Addr(0), opts...)
	mx, err := zklock.New(m, directory(tb))
	must(tb, err)
	return mx
}

func noop() *session.Trace {
	t := otelzk.New(otelzk.WithTracerProvider(tracenoop.NewTracerProvider()), otelzk.WithMeterProvider(metricnoop.NewMeterProvider()))
	return &t
}

// tracing counts the allocations so far for calls of hooks, which are in the files trace.go.
func tracing() int64 {
	runtime.GC() // the profile lags behind by two collections
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1024)
	for {
		n, ok := runtime.MemProfile(records, true)
		if ok {
			records = records[:n]
			break
		}
		records = make([]runtime.MemProfileRecord, 2*n)
	}
	var found int64
	for _, r := range records {
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if strings.HasSuffix(f.File, "/session/trace.go") || strings.HasSuffix(f.File, "/queue/trace.go") {
				found += r.AllocObjects
				break
			}
		}
	}
	return found
}

// Without hooks, a lock allocates nothing for them.
func TestNoTraceAllocatesNothing(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	off, on := mutex(t, nil), mutex(t, noop())
	cycle(t, off, 1) // the data of nodes is encoded once
	runtime.MemProfileRate = 1
	before := tracing()
	cycle(t, off, 20)
	without := tracing()
	if n := without - before; n != 0 {
		t.Errorf("%d allocations without hooks", n)
	}
	cycle(t, on, 1)
	if n := tracing() - without; n == 0 {
		t.Error("no allocations with hooks: the test looks in the wrong place")
	}
}

// BenchmarkTrace measures one lock and unlock without contention: without hooks, with providers that do nothing, and with
// providers that record. They take turns, round by round, since the machine's speed drifts. The benchmark reports medians,
// and medians of the ratios of each round.
func BenchmarkTrace(b *testing.B) {
	const rounds, perRound = 9, 20
	tel := newTelemetry()
	recording := otelzk.New(tel.opts...)
	locks := []*zklock.Mutex{mutex(b, nil), mutex(b, noop()), mutex(b, &recording)}
	for _, mx := range locks {
		cycle(b, mx, perRound)
	}
	times, ratios := make([][]float64, len(locks)), make([][]float64, len(locks))
	for b.Loop() {
		for range rounds {
			var first float64
			for i, mx := range locks {
				took := cycle(b, mx, perRound).Seconds() / perRound
				if i == 0 {
					first = took
				}
				times[i], ratios[i] = append(times[i], took), append(ratios[i], took/first)
			}
			tel.spans.Reset()
		}
	}
	b.ReportMetric(0, "ns/op") // of all together, which says nothing
	for i, name := range []string{"off", "noop", "recording"} {
		b.ReportMetric(median(times[i])*1e6, name+"-µs")
		if i > 0 {
			b.ReportMetric(median(ratios[i]), name+"/off")
		}
	}
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}
