package otelzk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/queue"
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

// typed is an error with an ErrorType.
type typed string

func (typed) Error() string       { return "typed" }
func (t typed) ErrorType() string { return string(t) }

// coded is an error with an ErrorCode.
type coded int32

func (coded) Error() string      { return "coded" }
func (c coded) ErrorCode() int32 { return int32(c) }

func TestErrorType(t *testing.T) {
	for _, c := range []struct {
		err         error
		typ, status string
	}{
		{context.DeadlineExceeded, "timeout", ""},
		{session.ErrClosed, "closed", ""},
		{session.ErrLost, "lost", ""},
		{session.ErrTooManyNodes, "too_many_nodes", ""},
		{session.ErrTooLong, "too_long", ""},
		{fmt.Errorf("%w: %w", zk.ErrConnectionClosed, session.ErrTooLong), "too_long", "CONNECTIONLOSS"},
		{session.ErrInvalid, "invalid", ""},
		{queue.ErrConflict, "conflict", ""},
		{queue.ErrSequence, "sequence_used_up", ""},
		{errors.New("something else"), "_OTHER", ""},
		{zk.ErrNoAuth, "NOAUTH", "NOAUTH"},
		{zk.ErrNoNode, "NONODE", "NONODE"},
		{zk.ErrConnectionClosed, "CONNECTIONLOSS", "CONNECTIONLOSS"},
		{errors.Join(zk.ErrConnectionClosed, zk.ErrSessionMoved), "SESSIONMOVED", "SESSIONMOVED"},
		{fmt.Errorf("%w: %w", zk.ErrConnectionClosed, coded(-127)), "THROTTLEDOP", "THROTTLEDOP"},
		{session.ErrUnimplemented, "UNIMPLEMENTED", "UNIMPLEMENTED"},
		{coded(-999), "_OTHER", ""},
		{errors.New("unknown error: -127"), "_OTHER", ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("session_uncertain")), "session_uncertain", ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("session_expired")), "session_expired", "SESSIONEXPIRED"},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("node_deleted")), "node_deleted", ""},
		{fmt.Errorf("%w: %w", session.ErrLost, typed("whatever it likes")), "lost", ""},
	} {
		wrapped := fmt.Errorf("lock /a: %w", c.err)
		if typ, status := errorType(wrapped), statusCode(wrapped); typ != c.typ || status != c.status {
			t.Errorf("%v: %q and %q, want %q and %q", c.err, typ, status, c.typ, c.status)
		}
	}
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestSpanContext(t *testing.T) {
	o := &observer{propagator: propagation.TraceContext{}}
	for what, c := range map[string]struct {
		traceparent string
		linked      bool
	}{
		"ours":                {parent, true},
		"of a later version":  {"01" + parent[2:] + "-more", true},
		"not sampled":         {parent[:54] + "0", true},
		"nothing":             {"", false},
		"a bad one":           {"00-zz-zz-01", false},
		"an empty one":        {"00-00000000000000000000000000000000-0000000000000000-00", false},
		"a forbidden version": {"ff" + parent[2:], false},
	} {
		if sc := o.spanContext(c.traceparent); sc.IsValid() != c.linked {
			t.Errorf("%s: %v", what, sc)
		}
	}
}

// Whatever other clients write, there is a link to the span in the text, or none.
func FuzzSpanContext(f *testing.F) {
	f.Add(parent)
	f.Add("00-\x00")
	o := &observer{propagator: propagation.TraceContext{}}
	f.Fuzz(func(t *testing.T, text string) {
		sc := o.spanContext(text)
		if sc.IsValid() && (!strings.Contains(text, sc.TraceID().String()) || !strings.Contains(text, sc.SpanID().String())) {
			t.Errorf("%q is read as %v", text, sc)
		}
	})
}

func TestTraceparent(t *testing.T) {
	o := &observer{propagator: propagation.TraceContext{}}
	sc := o.spanContext(parent)
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), sc)
	if got := o.traceparent(ctx); got != parent {
		t.Errorf("%q, want %q", got, parent)
	}
	if got := o.traceparent(context.Background()); got != "" {
		t.Errorf("%q for no span", got)
	}
	o.propagator = propagation.Baggage{} // has no traceparent
	if got := o.traceparent(ctx); got != "" {
		t.Errorf("%q from a propagator that has none", got)
	}
	if o.spanContext(parent).IsValid() {
		t.Error("a propagator that has no traceparent reads one")
	}
}
