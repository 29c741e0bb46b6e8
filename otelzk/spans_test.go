package otelzk_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func sameTree(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("spans%swant%s", got, want)
	}
}

// A lock that nobody else wants is a pair of siblings, with what they asked for below them;
// so is what a lease's guard asks for, from a goroutine of its own.
func TestUncontended(t *testing.T) {
	c := newClient(t, directory(t))
	ctx, caller := c.tracer.Start(patient(t), "caller")
	must(t, c.mx.Lock(ctx))
	c.started(t, "getData", 0) // the guard's
	c.unlock(t)
	caller.End()
	sameTree(t, c.tree(t, nil), `
caller
  lock mutex acquired position=0 attempts=1
    create CLIENT lock-
    getChildren CLIENT .
    getData CLIENT lock-0000000000
  unlock mutex released lock-0000000000 links=1
    delete CLIENT lock-0000000000
`)
	lock, unlock := c.started(t, "lock", 0), c.started(t, "unlock", 0)
	if unlock.Links()[0].SpanContext.SpanID() != lock.SpanContext().SpanID() {
		t.Error("unlock is not linked to its lock")
	}
}

// Everything that one of each kind of span says.
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
		"lock": {
			common, attribute.String("zklock.kind", "mutex"), attribute.String("zklock.path", dir),
			attribute.String("zklock.outcome", "acquired"),
			attribute.Int("zklock.queue.position", 0), attribute.Int("zklock.attempts", 1),
		},
		"unlock": {
			common, attribute.String("zklock.kind", "mutex"), attribute.String("zklock.path", dir),
			attribute.String("zklock.node", lease.Path()), attribute.String("zklock.outcome", "released"),
		},
		"delete": {
			common, attribute.String("zklock.request.path", lease.Path()),
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

// contend has another client hold the lock, and c wait for it.
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
	c.started(t, "watch", 0)
	return holder, func() error { return receive(t, "Lock", result) }, cancel
}

// A wait says for whom, and is linked to what he does.
func TestContended(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	holder, wait, _ := contend(t, c, dir)
	holder.unlock(t)
	must(t, wait())
	c.unlock(t)
	sameTree(t, c.tree(t, nil), `
caller
  lock mutex acquired position=1 attempts=1
    create CLIENT lock-
    getChildren CLIENT .
    getData CLIENT lock-0000000001
    getData CLIENT lock-0000000000
    watch lock-0000000000 links=1
  unlock mutex released lock-0000000001 links=1
    delete CLIENT lock-0000000001
`)
	watch, lock := c.started(t, "watch", 0), holder.started(t, "lock", 0)
	if got, want := watch.Links()[0].SpanContext, lock.SpanContext(); got.TraceID() != want.TraceID() || got.SpanID() != want.SpanID() || !got.IsRemote() {
		t.Errorf("linked to %+v, want %+v", got, want)
	}
	if id := attr(watch, "zklock.watched.id"); !strings.Contains(id, "/") {
		t.Errorf("the one waited for is %q", id)
	}
	if !strings.HasPrefix(attr(watch, "zklock.watched.path"), dir+"/") {
		t.Errorf("watches %q", attr(watch, "zklock.watched.path"))
	}
}

// The link costs no request.
func TestLinkCostsNoRequest(t *testing.T) {
	counts := make(map[bool]int)
	for _, inNode := range []bool{true, false} {
		dir := directory(t)
		c := newClient(t, dir, otelzk.WithTraceparentInNode(inNode))
		holder, wait, _ := contend(t, c, dir, otelzk.WithTraceparentInNode(inNode))
		// A listing that came before the node is made again, which is no matter here.
		counts[inNode] = c.proxy.Count(func(r zktest.Request) bool {
			return strings.HasPrefix(r.Path, dir) && r.Op != zktest.OpGetChildren && r.Op != zktest.OpGetChildren2
		})
		watch := c.started(t, "watch", 0)
		if linked := len(watch.Links()) == 1; linked != inNode || attr(watch, "zklock.watched.id") == "" {
			t.Errorf("traceparent in node %v: %d links, to %q", inNode, len(watch.Links()), attr(watch, "zklock.watched.id"))
		}
		holder.unlock(t)
		must(t, wait())
		c.unlock(t)
	}
	if counts[true] != counts[false] {
		t.Errorf("%d requests with links, %d without", counts[true], counts[false])
	}
}

// Nodes of others say nothing, and nothing is wrong with that.
func TestForeignNodes(t *testing.T) {
	for _, data := range []string{
		"", "192.168.0.1", `{"id":1}`, `{"id":`, `[]`, "\x00\xff",
		`{"traceparent":"00-x-y-01"}`,
		`{"traceparent":"00-00000000000000000000000000000000-0000000000000000-01"}`,
		`{"id":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		dir := directory(t)
		c := newClient(t, dir)
		q, err := queue.New(testserver.Connect(t, c.proxy.Addr()), dir)
		must(t, err)
		kind := &queue.Kind{Name: "mutex", Prefixes: []string{queue.PrefixLock}, Policy: func(queue.Node) queue.Policy { return queue.Policy{} }}
		lease, err := q.Acquire(patient(t), queue.Request{Kind: kind, Data: append([]byte{}, data...)})
		must(t, err)
		result := background(func() error { return c.mx.Lock(patient(t)) })
		watch := c.started(t, "watch", 0)
		must(t, lease.Release(patient(t)))
		must(t, receive(t, "Lock", result))
		c.unlock(t)
		if len(watch.Links()) > 0 || attr(watch, "zklock.watched.id") != "" || watch.Status().Code != codes.Unset {
			t.Errorf("%.40q: links %v, id %q, status %v", data, watch.Links(), attr(watch, "zklock.watched.id"), watch.Status())
		}
	}
}

// A Lock that its caller gives up is no error; its node's delete belongs to it all the same.
func TestCancelled(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	_, wait, cancel := contend(t, c, dir)
	cancel()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.started(t, "delete", 0)
	sameTree(t, c.tree(t, nil), `
caller
  lock mutex canceled position=1 attempts=1
    create CLIENT lock-
    getChildren CLIENT .
    getData CLIENT lock-0000000001
    getData CLIENT lock-0000000000
    watch canceled lock-0000000000 links=1
    delete CLIENT lock-0000000001
`)
}

// A deadline that passes is an error: the lock was wanted.
func TestTimeout(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	holder := newClient(t, dir)
	must(t, holder.mx.Lock(patient(t)))
	ctx := newDeadline()
	result := background(func() error { return c.mx.Lock(ctx) })
	c.started(t, "watch", 0)
	ctx.pass()
	if err := receive(t, "Lock", result); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	c.started(t, "delete", 0)
	sameTree(t, c.tree(t, nil), `
lock mutex failed position=1 attempts=1 type=timeout ERROR
  create CLIENT lock-
  getChildren CLIENT .
  getData CLIENT lock-0000000001
  getData CLIENT lock-0000000000
  watch failed lock-0000000000 type=timeout ERROR links=1
  delete CLIENT lock-0000000001
`)
}

// deadline is a context whose deadline passes when the test says so.
type deadline struct {
	context.Context
	done chan struct{}
}

func newDeadline() *deadline { return &deadline{context.Background(), make(chan struct{})} }

func (d *deadline) pass()                 { close(d.done) }
func (d *deadline) Done() <-chan struct{} { return d.done }
func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A TryLock that finds the lock taken is no error.
func TestBusy(t *testing.T) {
	dir := directory(t)
	c, holder := newClient(t, dir), newClient(t, dir)
	must(t, holder.mx.Lock(patient(t)))
	if ok, err := c.mx.TryLock(patient(t)); ok || err != nil {
		t.Fatal(ok, err)
	}
	sameTree(t, c.tree(t, nil), `
trylock mutex busy position=1 attempts=1
  create CLIENT lock-
  getChildren CLIENT .
  delete CLIENT lock-0000000001
`)
}

// dying tells of a request that depends on how the news of a loss travels.
func dying(s sdktrace.ReadOnlySpan) bool {
	return s.SpanKind() == trace.SpanKindClient && s.Status().Code == codes.Error
}

// A lock that is lost while held: its caller's span is told, and Unlock fails.
func TestLostWhileHeld(t *testing.T) {
	c := newClient(t, directory(t))
	ctx, caller := c.tracer.Start(patient(t), "caller")
	lease, err := c.mx.Acquire(ctx)
	must(t, err)
	_, err = lease.Token(patient(t)) // the guard has asked what it asks
	must(t, err)
	c.expire(t)
	receive(t, "the loss", lease.Done())
	hasEvent(t, caller.(sdktrace.ReadOnlySpan), "zklock.loss", "error.type", "session_expired")
	if err := lease.Release(context.Background()); !errors.Is(err, session.ErrLost) {
		t.Fatal(err)
	}
	caller.End()
	sameTree(t, c.tree(t, dying), `
caller
  lock mutex acquired position=0 attempts=1
    create CLIENT lock-
    getChildren CLIENT .
    getData CLIENT lock-0000000000
  unlock mutex lost lock-0000000000 type=session_expired ERROR links=1
`)
}

// A Lock whose session is lost goes on in the next, and says so.
func TestLostWhileWaiting(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	holder, wait, _ := contend(t, c, dir)
	c.expire(t)
	c.started(t, "watch", 1)
	lock := c.started(t, "lock", 0)
	hasEvent(t, lock, "zklock.retry", "zklock.retry.operation", "acquire")
	hasEvent(t, lock, "zklock.retry", "error.type", "session_expired")
	hasEvent(t, lock, "zklock.session.transition", "zklock.session.state", "lost")
	hasEvent(t, lock, "zklock.session.transition", "zklock.session.state", "connected")
	holder.unlock(t)
	must(t, wait())
	c.unlock(t)
	// Whether the news of the lost connection ended the wait or that of the session did.
	got := strings.ReplaceAll(c.tree(t, dying), "watch failed lock-0000000000 type=session_expired ERROR", "watch lock-0000000000")
	sameTree(t, got, `
caller
  lock mutex acquired position=1 attempts=2
    create CLIENT lock-
    getChildren CLIENT .
    getData CLIENT lock-0000000001
    getData CLIENT lock-0000000000
    watch lock-0000000000 links=1
    create CLIENT lock-
    getChildren CLIENT .
    getData CLIENT lock-0000000002
    getData CLIENT lock-0000000000
    watch lock-0000000000 links=1
  unlock mutex released lock-0000000002 links=1
    delete CLIENT lock-0000000002
`)
}

// Each try of a request is a span, and that there is another an event.
func TestRetry(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	c.proxy.CutAfterCommit(zktest.On(zktest.OpDelete, dir))
	lease, err := c.mx.Acquire(patient(t))
	must(t, err)
	must(t, lease.Release(patient(t)))
	c.settled(t)
	lost := c.started(t, "delete", 0)
	if attr(lost, "db.response.status_code") != "CONNECTIONLOSS" || attr(lost, "error.type") != "CONNECTIONLOSS" || lost.Status().Code != codes.Error {
		t.Errorf("delete: %v, status %v", lost.Attributes(), lost.Status())
	}
	again := c.started(t, "delete", 1)
	if attr(again, "db.response.status_code") != "NONODE" {
		t.Errorf("second delete: %v", again.Attributes())
	}
	unlock := c.started(t, "unlock", 0)
	for _, s := range []sdktrace.ReadOnlySpan{lost, again} {
		if s.Parent().SpanID() != unlock.SpanContext().SpanID() {
			t.Error("a delete is not the unlock's")
		}
	}
	hasEvent(t, unlock, "zklock.retry", "zklock.retry.operation", "delete")
	hasEvent(t, unlock, "zklock.retry", "error.type", "CONNECTIONLOSS")
	if attr(unlock, "zklock.outcome") != "released" || unlock.Status().Code != codes.Unset {
		t.Errorf("unlock: %v, status %v", unlock.Attributes(), unlock.Status())
	}
}

// What the server refuses is the same on the request and on the lock.
func TestRefused(t *testing.T) {
	c := newClient(t, directory(t)+"/lock")
	other, err := zkLockOfAnotherKind(t, c)
	must(t, err)
	if err := c.mx.Lock(patient(t)); !errors.Is(err, queue.ErrConflict) {
		t.Fatal(err)
	}
	must(t, other.Release(patient(t)))
	c.settled(t)
	lock := c.started(t, "lock", 0)
	if attr(lock, "zklock.outcome") != "failed" || attr(lock, "error.type") != "conflict" || lock.Status().Code != codes.Error || lock.Status().Description == "" {
		t.Errorf("lock: %v, status %v", lock.Attributes(), lock.Status())
	}
}

// zkLockOfAnotherKind holds a lease at the mutex's path, from a session without hooks. It is
// the first in the directory, whose making takes a refusal.
func zkLockOfAnotherKind(t *testing.T, c *client) (*queue.Lease, error) {
	q, err := queue.New(testserver.Connect(t, c.proxy.Addr()), c.mx.Path())
	must(t, err)
	kind := &queue.Kind{Name: "semaphore", Prefixes: []string{queue.PrefixLease}, Policy: func(queue.Node) queue.Policy { return queue.Policy{} }}
	return q.Acquire(patient(t), queue.Request{Kind: kind})
}

// A release with a span of its own is that one's child.
func TestReleaseBySomebodyElse(t *testing.T) {
	c := newClient(t, directory(t))
	lease, err := c.mx.Acquire(patient(t))
	must(t, err)
	_, err = lease.Token(patient(t))
	must(t, err)
	ctx, releaser := c.tracer.Start(patient(t), "releaser")
	must(t, lease.Release(ctx))
	releaser.End()
	sameTree(t, c.tree(t, nil), `
lock mutex acquired position=0 attempts=1
  create CLIENT lock-
  getChildren CLIENT .
  getData CLIENT lock-0000000000
releaser
  unlock mutex released lock-0000000000 links=1
    delete CLIENT lock-0000000000
`)
}

// A release that is not confirmed in time is certain all the same, and goes on.
func TestPendingRelease(t *testing.T) {
	dir := directory(t)
	c := newClient(t, dir)
	lease, err := c.mx.Acquire(patient(t))
	must(t, err)
	_, err = lease.Token(patient(t))
	must(t, err)
	hold := c.proxy.HoldRequest(zktest.On(zktest.OpDelete, dir))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := lease.Release(ctx); !errors.Is(err, queue.ErrReleasePending) {
		t.Fatal(err)
	}
	c.started(t, "delete", 0)
	hold.Release()
	sameTree(t, c.tree(t, nil), `
lock mutex acquired position=0 attempts=1
  create CLIENT lock-
  getChildren CLIENT .
  getData CLIENT lock-0000000000
unlock mutex pending lock-0000000000 links=1
  delete CLIENT lock-0000000000
`)
}

func TestWithoutRequestSpans(t *testing.T) {
	c := newClient(t, directory(t), otelzk.WithRequestSpans(false))
	must(t, c.mx.Lock(patient(t)))
	c.unlock(t)
	sameTree(t, c.tree(t, nil), `
lock mutex acquired position=0 attempts=1
unlock mutex released lock-0000000000 links=1
`)
	if _, metrics := c.collect(t); metrics["db.client.operation.duration"] == nil {
		t.Error("no metric of requests")
	}
}

// Whatever happens, spans end: here a thousand waits that are given up, many at a time.
func TestNoSpanLeftOpen(t *testing.T) {
	const goroutines, each = 20, 50
	dir := directory(t)
	holder := newClient(t, dir)
	must(t, holder.mx.Lock(patient(t)))
	// Half of them are given up while they wait, the others at any moment before.
	type waiting struct{}
	tel := newTelemetry()
	hooks := otelzk.New(tel.opts...)
	watch := hooks.Watch
	hooks.Watch = func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
		if cancel, ok := ctx.Value(waiting{}).(context.CancelFunc); ok {
			defer cancel()
		}
		return watch(ctx, w)
	}
	c := connect(t, dir, tel, hooks)
	var callers errgroup.Group
	for i := range goroutines {
		callers.Go(func() error {
			for range each {
				ctx, cancel := context.WithCancel(context.Background())
				if i%2 == 0 {
					ctx = context.WithValue(ctx, waiting{}, cancel)
				} else {
					go cancel()
				}
				if err := c.mx.Lock(ctx); !errors.Is(err, context.Canceled) {
					return err
				}
			}
			return nil
		})
	}
	must(t, callers.Wait())
	testserver.WaitChildren(t, dir, 1)
	holder.unlock(t)
	all := c.settled(t)
	locks := slices.DeleteFunc(slices.Clone(all), func(s sdktrace.ReadWriteSpan) bool { return s.Name() != "lock" })
	for _, s := range locks {
		if attr(s, "zklock.outcome") != "canceled" || s.Status().Code != codes.Unset {
			t.Errorf("%v, status %v", s.Attributes(), s.Status())
		}
	}
	byID := make(map[trace.SpanID]string)
	for _, s := range all {
		byID[s.SpanContext().SpanID()] = s.Name()
	}
	for _, s := range all {
		if s.SpanKind() == trace.SpanKindClient && byID[s.Parent().SpanID()] == "" && s.Name() != "setAuth" {
			t.Errorf("%s %s is nobody's", s.Name(), attr(s, "zklock.request.path"))
		}
	}
	t.Logf("%d locks got as far as a span, %d spans", len(locks), len(all))
}

// What several callers do at once, by one session, is each one's own.
func TestConcurrentCallers(t *testing.T) {
	const callers = 10
	tel := newTelemetry()
	root := directory(t)
	c := connect(t, root, tel, otelzk.New(tel.opts...))
	var all errgroup.Group
	traces := make(map[trace.TraceID]string)
	for i := range callers {
		dir := root + "/" + strconv.Itoa(i)
		mx, err := zklock.New(c.m, dir)
		must(t, err)
		ctx, caller := tel.tracer.Start(patient(t), "caller")
		traces[caller.SpanContext().TraceID()] = dir
		all.Go(func() error {
			defer caller.End()
			for range 5 {
				lease, err := mx.Acquire(ctx)
				if err != nil {
					return err
				}
				if err := lease.Release(context.Background()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, all.Wait())
	for _, s := range c.settled(t) {
		dir := traces[s.SpanContext().TraceID()]
		if dir == "" {
			t.Errorf("%s is nobody's", describe(s))
		}
		for _, key := range []string{"zklock.path", "zklock.node", "zklock.request.path"} {
			// The parents of the directory are on the way to it.
			if v := attr(s, key); v != "" && v != dir && !strings.HasPrefix(v, dir+"/") && !strings.HasPrefix(dir, v) {
				t.Errorf("%s, of %s, is in the trace of %s", describe(s), v, dir)
			}
		}
	}
}
