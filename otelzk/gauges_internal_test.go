package otelzk

import (
	"runtime"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// registered returns the number of hooks that the gauges of a provider read.
func registered(p metric.MeterProvider) int {
	metered.mu.Lock()
	defer metered.mu.Unlock()
	g := metered.of[newMeter(p)]
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.all)
}

// Hooks that no manager uses do not stay in the gauges, nor do those of a manager that is closed.
func TestGaugesDoNotLeak(t *testing.T) {
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	closed := New(WithMeterProvider(p))
	New(WithMeterProvider(p))
	zktest.Eventually(t, testserver.Patience, "the unused hooks to go", func() bool {
		runtime.GC()
		return registered(p) == 1
	})
	closed.State(session.Change{From: session.Connecting, To: session.Closed})
	if n := registered(p); n != 0 {
		t.Errorf("%d hooks are in the gauges", n)
	}
}

// uncomparable is a meter that cannot be the key of a map.
type uncomparable struct {
	noop.Meter
	_ []int
}

func TestUncomparableMeter(t *testing.T) {
	report(uncomparable{}, newLive(nil))()
}
