package otelzk_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Short names for the tests of this package.
var must = expect.NoError

func receive[T any](tb testing.TB, what string, ch <-chan T) T {
	tb.Helper()
	return expect.Receive(tb, what, ch)
}

// long is a session timeout for tests in which no session may be lost by itself, and no waiter may look again.
const long = time.Minute

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

// client is behind a proxy of its own. For locks it is a process of its own.
type client struct {
	*telemetry
	m     *session.Manager
	mx    *zklock.Mutex
	proxy *zktest.Proxy
}

func newClient(tb testing.TB, dir string, opts ...otelzk.Option) *client {
	tb.Helper()
	tel := newTelemetry()
	return connect(tb, dir, tel, otelzk.New(append(tel.opts, opts...)...))
}

func connect(tb testing.TB, dir string, tel *telemetry, hooks session.Trace) *client {
	tb.Helper()
	return connectBelow(tb, "", dir, tel, hooks)
}

// connectBelow is connect with a chroot.
func connectBelow(tb testing.TB, chroot, dir string, tel *telemetry, hooks session.Trace) *client {
	tb.Helper()
	proxy := testserver.Proxy(tb)
	m := testserver.Connect(tb, proxy.Addr()+chroot, session.WithTimeout(long), session.WithTrace(hooks))
	mx, err := zklock.New(m, dir)
	must(tb, err)
	return &client{tel, m, mx, proxy}
}

// directory creates a lock's directory that is never removed, so that the first create in it is that of a contender.
func directory(tb testing.TB) string {
	tb.Helper()
	dir := testserver.Path(tb)
	_, err := testserver.Admin(tb).Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
	must(tb, err)
	return dir
}

func patient(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Bound())
	tb.Cleanup(cancel)
	return ctx
}

// background runs f in a goroutine, and sends its error.
func background(f func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return ch
}

// unlock unlocks.
func (c *client) unlock(tb testing.TB) {
	tb.Helper()
	must(tb, c.mx.Unlock())
}

func (c *client) expire(tb testing.TB) {
	tb.Helper()
	must(tb, c.proxy.Expire(patient(tb), testserver.Session(tb, c.m).ID()))
}

// started returns the n-th span of a name, counted from zero, once it has been started.
func (tel *telemetry) started(tb testing.TB, name string, n int) sdktrace.ReadWriteSpan {
	tb.Helper()
	var found sdktrace.ReadWriteSpan
	zktest.Eventually(tb, testserver.Patience, fmt.Sprintf("span %s number %d", name, n), func() bool {
		seen := 0
		for _, s := range tel.spans.Started() {
			if s.Name() == name {
				if seen == n {
					found = s
					return true
				}
				seen++
			}
		}
		return false
	})
	return found
}

// knows waits until n requests for data were answered. A wait asks for that of its own node and that of the one ahead.
func (tel *telemetry) knows(tb testing.TB, n int) {
	tb.Helper()
	zktest.Eventually(tb, testserver.Patience, fmt.Sprint(n, " answers"), func() bool {
		answered := 0
		for _, s := range tel.spans.Ended() {
			if s.Name() == "getData /" {
				answered++
			}
		}
		return answered >= n
	})
}

// settled waits until no span is open, and returns all spans.
func (tel *telemetry) settled(tb testing.TB) []sdktrace.ReadWriteSpan {
	tb.Helper()
	var all []sdktrace.ReadWriteSpan
	zktest.Eventually(tb, testserver.Patience, "all spans to end", func() bool {
		all = tel.spans.Started()
		return len(all) == len(tel.spans.Ended())
	})
	return all
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

// hasEvent waits until a span has an event with this attribute.
func hasEvent(tb testing.TB, s sdktrace.ReadOnlySpan, name, key, value string) {
	tb.Helper()
	zktest.Eventually(tb, testserver.Patience, name+" with "+value, func() bool {
		return slices.ContainsFunc(s.Events(), func(e sdktrace.Event) bool {
			return e.Name == name && slices.Contains(e.Attributes, attribute.String(key, value))
		})
	})
}

// tree draws all spans, one a line, below their parents and in the order in which they began. Equal children in a row are
// drawn once, since a listing that came before the node is made again. Requests for which leave returns true are left out.
func (tel *telemetry) tree(tb testing.TB, leave func(sdktrace.ReadOnlySpan) bool) string {
	tb.Helper()
	all := tel.settled(tb)
	ids := make(map[trace.SpanID]bool)
	for _, s := range all {
		ids[s.SpanContext().SpanID()] = true
	}
	var out []string
	var draw func(parent trace.SpanID, depth int)
	draw = func(parent trace.SpanID, depth int) {
		for _, s := range all {
			above := s.Parent().SpanID()
			if !ids[above] && depth == 0 {
				above = parent // a root, or a child of another process
			}
			if above != parent || leave != nil && leave(s) {
				continue
			}
			line := strings.Repeat("  ", depth) + describe(s)
			if len(out) == 0 || out[len(out)-1] != line {
				out = append(out, line)
			}
			draw(s.SpanContext().SpanID(), depth+1)
		}
	}
	draw(trace.SpanID{}, 0)
	drawn := "\n" + strings.Join(out, "\n") + "\n"
	return drawn
}

// describe returns everything of a span that is the same in each run.
func describe(s sdktrace.ReadOnlySpan) string {
	words := []string{s.Name()}
	if s.SpanKind() == trace.SpanKindClient {
		words = append(words, "CLIENT")
	}
	for _, key := range []string{"zklock.kind", "zklock.outcome"} {
		if v := attr(s, key); v != "" {
			words = append(words, v)
		}
	}
	for _, key := range []string{"zklock.watched.path", "zklock.request.path", "zklock.node"} {
		if v := attr(s, key); v != "" {
			words = append(words, nameless(v))
		}
	}
	for _, key := range []string{"zklock.queue.position", "zklock.attempts", "error.type"} {
		if v := attr(s, key); v != "" {
			words = append(words, key[strings.LastIndex(key, ".")+1:]+"="+v)
		}
	}
	if s.Status().Code == codes.Error {
		words = append(words, "ERROR")
	}
	if n := len(s.Links()); n > 0 {
		words = append(words, fmt.Sprint("links=", n))
	}
	return strings.Join(words, " ")
}

// nameless returns the name of a contender's node without its id, and a dot for the directory.
func nameless(node string) string {
	const id = len("_c_00000000-0000-0000-0000-000000000000-")
	name := path.Base(node)
	if !strings.HasPrefix(name, "_c_") {
		return "."
	}
	return name[id:]
}

// collect returns the metrics, by name.
func (tel *telemetry) collect(tb testing.TB) (metricdata.ScopeMetrics, map[string]metricdata.Aggregation) {
	tb.Helper()
	var all metricdata.ResourceMetrics
	must(tb, tel.reader.Collect(context.Background(), &all))
	byName := make(map[string]metricdata.Aggregation)
	if len(all.ScopeMetrics) == 0 {
		return metricdata.ScopeMetrics{}, byName
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		byName[m.Name] = m.Data
	}
	return all.ScopeMetrics[0], byName
}
