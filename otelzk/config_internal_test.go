package otelzk

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/turnstile-go/turnstile/session"
)

// refusing is a meter that refuses all instruments.
type refusing struct{ metricnoop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter {
	return refusingMeter{its: new(int)}
}

type refusingMeter struct {
	metricnoop.Meter
	its *int // managers of one meter share their instruments
}

var errRefused = errors.New("refused")

func (refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errRefused
}

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errRefused
}

func (refusingMeter) Float64Gauge(string, ...metric.Float64GaugeOption) (metric.Float64Gauge, error) {
	return nil, errRefused
}

func (refusingMeter) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return nil, errRefused
}

func (refusingMeter) Float64ObservableGauge(
	string, ...metric.Float64ObservableGaugeOption,
) (metric.Float64ObservableGauge, error) {
	return nil, errRefused
}

func (refusingMeter) Int64ObservableUpDownCounter(
	string, ...metric.Int64ObservableUpDownCounterOption,
) (metric.Int64ObservableUpDownCounter, error) {
	return nil, errRefused
}

func (refusingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errRefused
}

// A nil provider is ignored.
func TestNilProviders(t *testing.T) {
	c := newConfig([]Option{nil, WithTracerProvider(nil), WithMeterProvider(nil)})
	if c.tracers != otel.GetTracerProvider() || c.meters != otel.GetMeterProvider() {
		t.Errorf("providers %T and %T", c.tracers, c.meters)
	}
}

// A refused instrument is reported, and everything else works without it.
func TestRefusedInstruments(t *testing.T) {
	reported := 0
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if errors.Is(err, errRefused) {
			reported++
		}
	}))
	hooks := New(WithMeterProvider(refusing{}))
	if reported != 16 { // 15 instruments and the callback
		t.Errorf("%d reports, want 16", reported)
	}
	_, end := hooks.Acquire(t.Context(), session.AcquireInfo{Kind: "mutex"})
	end(session.AcquireResult{})
	hooks.Hold(t.Context(), session.HoldInfo{})(nil)
	hooks.Job(t.Context(), session.JobInfo{Outcome: "ran", Ticks: 1})
	hooks.State(session.Change{To: session.Lost})
	hooks.State(session.Change{To: session.Closed})
}

// uncomparable is a meter that cannot be the key of a map.
type uncomparable struct {
	metricnoop.Meter
	_ []int
}

func TestUncomparableMeter(*testing.T) { liveOf(uncomparable{}) }
