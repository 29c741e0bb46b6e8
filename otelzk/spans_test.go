package otelzk_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/zktest"
)

func sameTree(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("spans%swant%s", got, want)
	}
}

// The spans of an uncontended lock are siblings, with their requests as children. So are the requests of a lease's guard,
// which come from a goroutine of its own.
func TestUncontended(t *testing.T) {
	c := newClient(t, directory(t))
	ctx, caller := c.tracer.Start(patient(t), "caller")
	must(t, c.mx.Lock(ctx))
	guard := c.started(t, "getData /", 0)
	zktest.Eventually(t, testserver.Patience, "the guard's answer", func() bool { return !guard.EndTime().IsZero() })
	c.unlock(t)
	caller.End()
	sameTree(t, c.tree(t, nil), `
caller
  zklock lock mutex acquired position=0 attempts=1
    create / CLIENT lock-
    getChildren / CLIENT .
    getData / CLIENT lock-0000000000
  zklock hold mutex released lock-0000000000 links=1
  zklock unlock mutex released lock-0000000000 links=1
    delete / CLIENT lock-0000000000
`)
	lock, unlock := c.started(t, "zklock lock", 0), c.started(t, "zklock unlock", 0)
	if unlock.Links()[0].SpanContext.SpanID() != lock.SpanContext().SpanID() {
		t.Error("unlock is not linked to its lock")
	}
}

// All attributes of one span of each kind.
func TestAttributes(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir, otelzk.WithAttributes(attribute.String("ensemble", "blue")))
	lease, err := c.mx.Acquire(patient(t))
	must(t, err)
	must(t, lease.Release(patient(t)))
	c.settled(t)
	host, portText, err := net.SplitHostPort(c.proxy.Addr())
	must(t, err)
	port, err := strconv.Atoi(portText)
	must(t, err)
	common := attribute.String("ensemble", "blue")
	for name, want := range map[string][]attribute.KeyValue{
		"zklock lock": {
			common, attribute.String("db.namespace", "/"), attribute.String("zklock.kind", "mutex"), attribute.String("zklock.path", dir),
			attribute.String("zklock.outcome", "acquired"),
			attribute.Int("zklock.queue.position", 0), attribute.Int("zklock.attempts", 1),
		},
		"zklock unlock": {
			common, attribute.String("db.namespace", "/"), attribute.String("zklock.kind", "mutex"), attribute.String("zklock.path", dir),
			attribute.String("zklock.node", lease.Path()), attribute.String("zklock.outcome", "released"),
		},
		"zklock hold": {
			common, attribute.String("db.namespace", "/"), attribute.String("zklock.kind", "mutex"), attribute.String("zklock.path", dir),
			attribute.String("zklock.node", lease.Path()), attribute.String("zklock.outcome", "released"),
		},
		"delete /": {
			common, attribute.String("db.namespace", "/"), attribute.String("zklock.request.path", lease.Path()),
			attribute.String("db.system.name", "zookeeper"), attribute.String("db.operation.name", "delete"),
			attribute.String("server.address", host), attribute.Int("server.port", port),
			attribute.String("network.peer.address", host), attribute.Int("network.peer.port", port),
		},
	} {
		s := c.started(t, name, 0)
		got, want := attribute.NewSet(s.Attributes()...), attribute.NewSet(want...)
		if !got.Equals(&want) {
			t.Errorf("%s has\n%s\nwant\n%s", name, got.Encoded(attribute.DefaultEncoder()), want.Encoded(attribute.DefaultEncoder()))
		}
		if s.Status().Code != codes.Unset {
			t.Errorf("%s: status %v", name, s.Status())
		}
		scope := s.InstrumentationScope()
		if scope.Name != otelzk.ScopeName || scope.Version == "" || scope.SchemaURL != semconv.SchemaURL {
			t.Errorf("%s: scope %+v", name, scope)
		}
	}
}

// contend lets another client hold the lock, and c wait for it until c knows that one.
func contend(t *testing.T, c *client, dir string, opts ...otelzk.Option) (holder *client, wait func() error, cancel context.CancelFunc) {
	t.Helper()
	holder = newClient(t, dir, opts...)
	must(t, holder.mx.Lock(patient(t)))
	ctx, cancel := context.WithCancel(patient(t))
	t.Cleanup(cancel)
	ctx, caller := c.tracer.Start(ctx, "caller")
	result := background(func() error {
		defer caller.End()
		return c.mx.Lock(ctx)
	})
	c.started(t, "zklock watch", 0)
	c.knows(t, 2)
	return holder, func() error { return receive(t, "Lock", result) }, cancel
}

// The span of a wait names the holder, and is linked to its span. So is the span of the Lock that waits.
func TestContended(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	holder, wait, _ := contend(t, c, dir)
	holder.unlock(t)
	must(t, wait())
	c.unlock(t)
	sameTree(t, c.tree(t, nil), `
caller
  zklock lock mutex acquired position=1 attempts=1 links=1
    create / CLIENT lock-
    getChildren / CLIENT .
    getData / CLIENT lock-0000000001
    getData / CLIENT lock-0000000000
    zklock watch lock-0000000000 links=1
  zklock hold mutex released lock-0000000001 links=1
  zklock unlock mutex released lock-0000000001 links=1
    delete / CLIENT lock-0000000001
`)
	watch, want := c.started(t, "zklock watch", 0), holder.started(t, "zklock lock", 0).SpanContext()
	for _, s := range []sdktrace.ReadOnlySpan{watch, c.started(t, "zklock lock", 0)} {
		got := s.Links()[0].SpanContext
		if got.TraceID() != want.TraceID() || got.SpanID() != want.SpanID() || !got.IsRemote() {
			t.Errorf("%s is linked to %+v, want %+v", s.Name(), got, want)
		}
	}
	if id := attr(watch, "zklock.watched.id"); !strings.Contains(id, "/") {
		t.Errorf("the one waited for is %q", id)
	}
	if !strings.HasPrefix(attr(watch, "zklock.watched.path"), dir+"/") {
		t.Errorf("watches %q", attr(watch, "zklock.watched.path"))
	}
}
