package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"github.com/turnstile-go/turnstile/bench/internal/usage"
	"github.com/turnstile-go/turnstile/zktest"
)

// meter compares the resources in use with those at the time when it was made.
type meter struct {
	e     *zktest.Ensemble
	base  usage.Usage
	begin time.Time // of the present phase
	sent  int       // packets by then
}

func newMeter(ctx context.Context, e *zktest.Ensemble) (*meter, error) {
	base, err := usage.Take(ctx, e)
	if err != nil {
		return nil, err
	}
	base.MemoryLeft()
	return &meter{e: e, base: base, begin: time.Now(), sent: base.Packets}, nil
}

// phase begins a phase, which is timed, and whose requests are counted.
func (m *meter) phase(ctx context.Context) error {
	u, err := usage.Take(ctx, m.e)
	m.begin, m.sent = time.Now(), u.Packets
	return err
}

// until waits for a condition on the server. It returns the resources in use then, the time of the
// phase, and its requests.
func (m *meter) until(ctx context.Context, what string, as func(usage.Usage) bool) (usage.Usage, time.Duration, int, error) {
	for {
		u, err := usage.Take(ctx, m.e)
		took := time.Since(m.begin)
		if err == nil && as(u) {
			return u, took, u.Packets - m.sent, nil
		}
		select {
		case <-ctx.Done():
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			return u, took, 0, fmt.Errorf("waiting for %s, with %+v: %w", what, u, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// quiet waits until the number of goroutines no longer falls: those of in-flight requests have ended.
func (m *meter) quiet(ctx context.Context, goroutinesEach float64, n int) (usage.Usage, error) {
	limit := m.base.Goroutines + int(goroutinesEach*float64(n)) + slackGoroutines
	u, _, _, err := m.until(ctx, fmt.Sprintf("at most %d goroutines", limit), func(u usage.Usage) bool {
		return u.Goroutines <= limit
	})
	u.MemoryLeft()
	return u, err
}

// slackGoroutines allows for a heartbeat that is under way, and the like.
const slackGoroutines = 10

// over waits until nothing more is in use than at the beginning.
func (m *meter) over(ctx context.Context) error {
	_, _, _, err := m.until(ctx, "all to be as before", func(u usage.Usage) bool { return u.Above(m.base) == "" })
	return err
}

// goroutines adds a row for the goroutines of each of n.
func (m *meter) goroutines(t *table, u usage.Usage, n int) {
	t.row("goroutines for each", "%.2f", float64(u.Goroutines-m.base.Goroutines)/float64(n))
}

// memory adds rows for the memory of each of n. It is for managers: that of locks and of waiters is
// measured beside other libraries, in bench/rivals.
func (m *meter) memory(t *table, u usage.Usage, n int) {
	// Go uses free stacks again, so that there can be fewer than before.
	kib := func(now, before uint64) float64 { return max(0, float64(now)-float64(before)) / float64(n) / 1024 }
	t.row("memory for each, after a garbage collection: heap", "%.1f KiB", kib(u.Heap, m.base.Heap))
	t.row("and stacks", "%.1f KiB", kib(u.Stacks, m.base.Stacks))
}
