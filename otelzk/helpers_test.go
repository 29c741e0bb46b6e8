package otelzk_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Short names for the tests of this package.
var (
	must    = expect.NoError
	wantErr = expect.Match
)

// lockPath is the lock of a client. Its directory is there, so that the first create is that of a contender.
const lockPath = "/lock"

// world is a server of its own in virtual time, and its clients.
type world struct {
	*testing.T
	server  *zktest.Server
	clients []*client
}

func inBubble(t *testing.T, f func(t *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: zktest.Start(t, zktest.ContainerCheck(24*time.Hour))}
		w.server.Delay(time.Millisecond)
		_, err := testserver.Session(t, w.connect("", session.Trace{})).Create(t.Context(), lockPath, nil, session.Persistent)
		must(t, err)
		f(w)
	})
}

// connect returns a manager with these hooks. For locks it is another process.
func (t *world) connect(chroot string, hooks session.Trace) *session.Manager {
	t.Helper()
	m, err := session.Connect(t.Context(), "10.0.0.1:2182"+chroot, session.WithDialer(t.server.Dialer()), session.WithTrace(hooks),
		session.WithTimeout(time.Minute), session.WithTickTime(2*time.Second), session.WithLogger(slog.New(slog.DiscardHandler)),
		session.WithBackoff(time.Millisecond, time.Millisecond))
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// telemetry records a client's spans and metrics.
type telemetry struct {
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
	tracer trace.Tracer // of the caller's spans
	opts   []otelzk.Option
}

func newTelemetry() *telemetry {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	return &telemetry{spans: spans, reader: reader, tracer: tracers.Tracer("caller"), opts: []otelzk.Option{
		otelzk.WithTracerProvider(tracers), otelzk.WithMeterProvider(meters),
	}}
}

// client is a process with a mutex.
type client struct {
	*telemetry
	name string
	m    *session.Manager
	mx   *zklock.Mutex
}

func (t *world) client(name string, opts ...otelzk.Option) *client {
	t.Helper()
	tel := newTelemetry()
	m := t.connect("", otelzk.New(append(tel.opts, opts...)...))
	c := &client{tel, name, m, made[*zklock.Mutex](t)(zklock.New(m, lockPath))}
	t.clients = append(t.clients, c)
	return c
}

// made is for a constructor that must succeed.
func made[L any](tb testing.TB) func(L, error) L {
	return func(l L, err error) L {
		tb.Helper()
		must(tb, err)
		return l
	}
}

// labelled returns a context with a label for acquisitions.
func (t *world) labelled(text string) context.Context { return queue.WithLabel(t.Context(), text) }

// begin calls f in a goroutine.
func begin(f func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return ch
}

// soon is more than anything takes that happens by itself.
const soon = time.Second

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

func (t *world) expire(c *client) {
	t.Helper()
	must(t, t.server.Expire(t.Context(), testserver.Session(t, c.m).ID()))
	pass(soon)
}

var ids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// tidy replaces what differs from run to run.
func tidy(text string) string {
	return ids.ReplaceAllString(strings.ReplaceAll(text, queue.Identity(), "host/pid"), "ID")
}

// tree draws the spans of a client, one a line, below their parents and in the order in which they began. Equal children in
// a row are drawn once. Those for which leave returns true are left out.
func (t *world) tree(c *client, leave func(sdktrace.ReadOnlySpan) bool) string {
	owners := make(map[[2]any]string)
	for _, c := range t.clients {
		for _, s := range c.spans.Started() {
			owners[idOf(s.SpanContext())] = c.name + "'s " + s.Name()
		}
	}
	all := c.spans.Started()
	var lines []string
	var draw func(parent trace.SpanID, depth int)
	draw = func(parent trace.SpanID, depth int) {
		for _, s := range all {
			if s.Parent().SpanID() != parent || leave != nil && leave(s) {
				continue
			}
			if line := strings.Repeat("  ", depth) + describe(s, owners); len(lines) == 0 || lines[len(lines)-1] != line {
				lines = append(lines, line)
			}
			draw(s.SpanContext().SpanID(), depth+1)
		}
	}
	draw(trace.SpanID{}, 0)
	return strings.Join(lines, "\n")
}

func idOf(c trace.SpanContext) [2]any { return [2]any{c.TraceID(), c.SpanID()} }

// describe returns all that a span says.
func describe(s sdktrace.ReadWriteSpan, owners map[[2]any]string) string {
	words := []string{s.Name()}
	scope := s.InstrumentationScope()
	ours := scope.Name == otelzk.ScopeName && scope.Version != "" && scope.SchemaURL == semconv.SchemaURL
	if !ours && s.Name() != "caller" {
		words = append(words, fmt.Sprintf("of another scope: %+v", scope))
	}
	if s.SpanKind() != trace.SpanKindInternal {
		words = append(words, s.SpanKind().String())
	}
	if len(s.Attributes()) > 0 {
		words = append(words, attributes(attribute.NewSet(s.Attributes()...)))
	}
	if s.Status().Code != codes.Unset {
		words = append(words, strings.ToUpper(s.Status().Code.String()))
	}
	for _, l := range s.Links() {
		arrow := "->"
		if l.SpanContext.IsRemote() {
			arrow = "-> remote"
		}
		words = append(words, arrow, owners[idOf(l.SpanContext)])
	}
	for _, e := range s.Events() {
		words = append(words, "! "+e.Name, attributes(attribute.NewSet(e.Attributes...)))
	}
	if s.EndTime().IsZero() {
		words = append(words, "(open)")
	}
	return strings.Join(words, " ")
}

func attributes(set attribute.Set) string {
	return "{" + tidy(set.Encoded(attribute.DefaultEncoder())) + "}"
}

// attr returns an attribute of a span as text, "" if there is none.
func attr(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

// metrics returns a line for each point that is not 0: the value, and the number of measurements of a histogram. Ages are
// in whole seconds. With zeros, a line before the points of a metric says what it is.
func (tel *telemetry) metrics(tb testing.TB, zeros bool) string {
	tb.Helper()
	var all metricdata.ResourceMetrics
	must(tb, tel.reader.Collect(context.Background(), &all))
	var lines []string
	for _, scope := range all.ScopeMetrics {
		if zeros {
			of := scope.Scope
			lines = append(lines, fmt.Sprintf("%s %s, with a version: %v", of.Name, of.SchemaURL, of.Version != ""))
		}
		for _, m := range scope.Metrics {
			var points []string
			add := func(set attribute.Set, value float64) {
				if zeros || value != 0 {
					points = append(points, fmt.Sprintf("%s%s %.0f", m.Name, attributes(set), value))
				}
			}
			what := fmt.Sprintf("# %s (%s): %s", m.Name, m.Unit, m.Description)
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				what += fmt.Sprintf(" Sum, %v, only grows: %v.", data.Temporality, data.IsMonotonic)
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				what += " Gauge."
				for _, p := range data.DataPoints {
					add(p.Attributes, math.Floor(p.Value))
				}
			case metricdata.Histogram[float64]:
				what += fmt.Sprintf(" Histogram, %v, %v.", data.Temporality, data.DataPoints[0].Bounds)
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Count))
				}
			}
			if slices.Sort(points); zeros {
				lines = append(lines, what)
			}
			lines = append(lines, points...)
		}
	}
	return strings.Join(lines, "\n")
}

func TestMain(m *testing.M) {
	otel.SetTextMapPropagator(propagation.TraceContext{}) // which makes the links
	testserver.Main(m)
}
