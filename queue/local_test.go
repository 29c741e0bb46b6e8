package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// localKind is a mutex.
var localKind = &Kind{
	Name:     "mutex",
	Prefixes: []string{PrefixLock},
	Policy:   func(Node) Policy { return Policy{} },
}

// process is one that locks by way of a local queue, behind a proxy.
type process struct {
	*Local
	m     *session.Manager
	proxy *zktest.Proxy
}

func newProcess(t *testing.T, dir string, r Request, handovers int, opts ...session.Option) *process {
	t.Helper()
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), append(opts, session.WithTimeout(testserver.Patience))...)
	q, err := New(m, dir)
	noError(t, err)
	r.Kind = localKind
	l, err := q.Local(r, handovers)
	noError(t, err)
	return &process{l, m, proxy}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	t.Cleanup(cancel)
	return ctx
}

// waits is an Acquire under way.
type waits struct {
	cancel context.CancelFunc
	done   chan grant
}

// wait begins an Acquire and returns when it is the n-th of those who wait.
func (p *process) wait(t *testing.T, n int) *waits {
	t.Helper()
	return p.waitWith(t, patience(t), n)
}

func (p *process) waitWith(t *testing.T, ctx context.Context, n int) *waits {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	w := &waits{cancel, make(chan grant, 1)}
	go func() {
		lease, err := p.Acquire(ctx)
		w.done <- grant{lease: lease, err: err}
	}()
	p.settle(t, n)
	return w
}

// settle waits until so many wait.
func (p *process) settle(t *testing.T, n int) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "those who wait", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.waiting.Len() == n
	})
}

func (w *waits) lease(t *testing.T) *Lease {
	t.Helper()
	g := <-w.done // bounded by its context
	noError(t, g.err)
	return g.lease
}

func (w *waits) fails(t *testing.T, target error) {
	t.Helper()
	if g := <-w.done; !errors.Is(g.err, target) {
		t.Fatalf("Acquire: %v, want %v", g.err, target)
	}
}

func (p *process) hold(t *testing.T) *Lease {
	t.Helper()
	l, err := p.Acquire(patience(t))
	noError(t, err)
	return l
}

func giveBack(t *testing.T, l *Lease) {
	t.Helper()
	noError(t, l.Release(patience(t)))
}

func tokenOf(t *testing.T, l *Lease) int64 {
	t.Helper()
	n, err := l.Token(patience(t))
	noError(t, err)
	return n
}

// lostBy waits until a lease is lost.
func lostBy(t *testing.T, l *Lease) {
	t.Helper()
	ctx, cancel := l.Context(patience(t))
	defer cancel()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, session.ErrLost) || !errors.Is(l.Err(), session.ErrLost) {
		t.Fatalf("cause %v, error %v", cause, l.Err())
	}
}

// Those who wait get the lock in the order in which they came, each with a lease of its own,
// by one node and without a request.
func TestLocalOrder(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, Request{}, 100)
	l := p.hold(t)
	token, node := tokenOf(t, l), l.Path()
	var all []*waits
	for i := range 5 {
		all = append(all, p.wait(t, i+1))
	}
	testserver.WaitChildren(t, dir, 1)
	p.proxy.ResetRequests()
	for _, w := range all {
		giveBack(t, l)
		next := w.lease(t)
		if next == l || !errors.Is(l.Err(), ErrReleased) || next.Err() != nil || next.Path() != node || tokenOf(t, next) != token {
			t.Fatalf("%s, %v; then %s, %v", l.Path(), l.Err(), next.Path(), next.Err())
		}
		if err := l.Release(patience(t)); !errors.Is(err, ErrReleased) || next.Err() != nil {
			t.Fatalf("released again: %v; the next: %v", err, next.Err())
		}
		l = next
	}
	if n := p.proxy.Count(func(r zktest.Request) bool { return r.Path == dir || path.Dir(r.Path) == dir }); n != 0 {
		t.Errorf("%d requests for 5 hand-overs", n)
	}
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// After so many hand-overs it is the turn of others, and those who still wait are behind them.
// The token grows from turn to turn.
func TestLocalBound(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newProcess(t, dir, Request{}, 1), newProcess(t, dir, Request{}, 1)
	first := p.hold(t)
	second, third := p.wait(t, 1), p.wait(t, 2)
	other := q.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, first)
	l := second.lease(t)
	// The third has its place before the node of the second goes: whoever gets in then has
	// it behind him.
	deletes := p.proxy.Count(zktest.On(zktest.OpDelete, dir))
	create := p.proxy.HoldRequest(zktest.On(zktest.OpCreate, dir))
	released := l.StartRelease(patience(t))
	<-create.Hit()
	if p.proxy.Count(zktest.On(zktest.OpDelete, dir)) != deletes || !errors.Is(l.Err(), ErrReleased) {
		t.Errorf("its node is gone, or the lease is held still: %v", l.Err())
	}
	create.Release()
	noError(t, released())
	o := other.lease(t)
	testserver.WaitChildren(t, dir, 2)
	p.settle(t, 1)
	giveBack(t, o)
	last := third.lease(t)
	if a, b, c := tokenOf(t, l), tokenOf(t, o), tokenOf(t, last); a >= b || b >= c {
		t.Errorf("tokens %d, %d, %d", a, b, c)
	}
	giveBack(t, last)
	testserver.WaitChildren(t, dir, 0)
}

// A waiter that is cancelled concerns neither the others nor the node, though it was the first
// and is the reason that there is one; with the last one the node goes.
func TestLocalCancel(t *testing.T) {
	dir := testserver.Path(t)
	holder := newProcess(t, dir, Request{}, 1)
	h := holder.hold(t)
	p := newProcess(t, dir, Request{}, 1)
	one, two, three := p.wait(t, 1), p.wait(t, 2), p.wait(t, 3)
	testserver.WaitChildren(t, dir, 2)
	names := testserver.Children(t, dir)
	one.cancel()
	one.fails(t, context.Canceled)
	three.cancel()
	three.fails(t, context.Canceled)
	giveBack(t, h)
	l := two.lease(t)
	if l.Path() != path.Join(dir, names[0]) && l.Path() != path.Join(dir, names[1]) {
		t.Errorf("%s is none of %v", l.Path(), names)
	}
	four := p.wait(t, 1) // behind a hold of this process, with no node
	four.cancel()
	four.fails(t, context.Canceled)
	if l.Err() != nil {
		t.Error(l.Err())
	}
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)

	h = holder.hold(t)
	one, two = p.wait(t, 1), p.wait(t, 2)
	testserver.WaitChildren(t, dir, 2)
	one.cancel()
	two.cancel()
	one.fails(t, context.Canceled)
	two.fails(t, context.Canceled)
	testserver.WaitChildren(t, dir, 1)
	three = p.wait(t, 1) // a new contender, though the one before was called back
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, h)
	giveBack(t, three.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// The loss of the session or of the node is told to the holder. Those who wait get another
// turn, and what the one who has lost it does is nothing to them.
func TestLocalLoss(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, p *process, l *Lease)
	}{
		{"session", func(t *testing.T, p *process, _ *Lease) {
			noError(t, p.proxy.Expire(patience(t), testserver.Session(t, p.m).ID()))
		}},
		{"node", func(t *testing.T, _ *process, l *Lease) { testserver.Delete(t, l.Path()) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newProcess(t, dir, Request{}, 10)
			first := p.hold(t)
			second, third := p.wait(t, 1), p.wait(t, 2)
			giveBack(t, first)
			l := second.lease(t)
			token := tokenOf(t, l)
			c.lose(t, p, l)
			lostBy(t, l)
			next := third.lease(t)
			if tokenOf(t, next) <= token {
				t.Errorf("token %d after %d", tokenOf(t, next), token)
			}
			last := p.wait(t, 1)
			if err := l.Release(patience(t)); !errors.Is(err, session.ErrLost) {
				t.Errorf("Release of what was lost: %v", err)
			}
			if next.Err() != nil || !errors.Is(first.Err(), ErrReleased) {
				t.Errorf("the next: %v, the first: %v", next.Err(), first.Err())
			}
			giveBack(t, next)
			giveBack(t, last.lease(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// A session that is known to be lost, by the clock or by an event that is still on its way to
// the guard, is passed on to nobody.
func TestLocalPassesNothingLost(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, Request{}, 10)
	l := p.hold(t)
	tokenOf(t, l) // the watch is set
	w := p.wait(t, 1)
	standing := l.t
	if !standing.stands() {
		t.Fatal("a lease that is held is not known to be")
	}
	standing.mu.Lock()
	own := standing.own
	testserver.Delete(t, l.Path()) // the guard cannot tell anybody
	wake := make(chan struct{}, 1)
	stop := own.Notify(wake)
	<-wake
	stop()
	standing.mu.Unlock()
	if standing.stands() || p.pass(standing) {
		t.Error("a turn whose node is gone was passed on")
	}
	giveBack(t, w.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// Whoever is asked to make room is the last of the turn.
func TestLocalRevoked(t *testing.T) {
	dir := testserver.Path(t)
	asked := make(chan *Lease, 10)
	p := newProcess(t, dir, Request{Revoked: func(l *Lease) { asked <- l }}, 10)
	q := newProcess(t, dir, Request{}, 10)
	first := p.hold(t)
	second, third := p.wait(t, 1), p.wait(t, 2)
	other := q.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, first)
	l := second.lease(t)
	_, err := testserver.Admin(t).Set(l.Path(), []byte(RevokeMessage), -1)
	noError(t, err)
	if got := <-asked; got != l {
		t.Errorf("another lease was asked for: %v", got.Err())
	}
	giveBack(t, l)
	giveBack(t, other.lease(t)) // not the third
	giveBack(t, third.lease(t))
	if len(asked) != 0 {
		t.Error("asked twice")
	}
	testserver.WaitChildren(t, dir, 0)
}

// A try finds whoever holds or waits in this process without asking the server, and leaves
// those in peace who come meanwhile.
func TestLocalTry(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newProcess(t, dir, Request{}, 10), newProcess(t, dir, Request{}, 10)
	busy := func(requests bool) {
		t.Helper()
		p.proxy.ResetRequests()
		if _, err := p.TryAcquire(patience(t)); !errors.Is(err, ErrBusy) {
			t.Fatalf("TryAcquire: %v", err)
		}
		if n := p.proxy.Count(zktest.On(zktest.OpCreate, dir)); (n > 0) != requests {
			t.Errorf("%d creates", n)
		}
	}
	l, err := p.TryAcquire(patience(t))
	noError(t, err)
	busy(false)
	w := p.wait(t, 1)
	busy(false)
	giveBack(t, l)
	l = w.lease(t)
	giveBack(t, l)
	testserver.WaitChildren(t, dir, 0)

	o := q.hold(t)
	busy(true)
	w = p.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	busy(false)
	giveBack(t, o)
	giveBack(t, w.lease(t))

	// One who comes while the try is under way has it handed on, or contends after it.
	for _, taken := range []bool{false, true} {
		if taken {
			o = q.hold(t)
		}
		hold := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
		tried := make(chan grant, 1)
		go func() {
			l, err := p.TryAcquire(patience(t))
			tried <- grant{lease: l, err: err}
		}()
		zktest.Eventually(t, testserver.Patience, "the try", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.envoy != nil
		})
		w = p.wait(t, 1)
		gone := p.wait(t, 2)
		gone.cancel()
		gone.fails(t, context.Canceled)
		hold.Release()
		g := <-tried
		if taken {
			if !errors.Is(g.err, ErrBusy) {
				t.Errorf("TryAcquire: %v", g.err)
			}
			giveBack(t, o)
			giveBack(t, w.lease(t))
			continue
		}
		noError(t, g.err)
		giveBack(t, g.lease)
		next := w.lease(t)
		if next.Path() != g.lease.Path() {
			t.Error("not handed on")
		}
		giveBack(t, next)
	}
	testserver.WaitChildren(t, dir, 0)
}

// What keeps the one contender out is told to all who wait; and so is the end of the manager,
// to whoever waits behind a hold too.
func TestLocalErrors(t *testing.T) {
	dir := testserver.Path(t)
	other := newProcess(t, dir, Request{}, 1)
	h := other.hold(t)
	p := newProcess(t, dir, Request{}, 1)
	one, two := p.wait(t, 1), p.wait(t, 2)
	testserver.WaitChildren(t, dir, 2)
	noError(t, p.m.Close())
	one.fails(t, session.ErrClosed)
	two.fails(t, session.ErrClosed)
	three := other.wait(t, 1)
	noError(t, other.m.Close())
	three.fails(t, session.ErrClosed)
	if !errors.Is(h.Err(), session.ErrClosed) {
		t.Error(h.Err())
	}
	testserver.WaitChildren(t, dir, 0)

	fails := newProcess(t, dir, Request{}, 1)
	q := fails.q
	conflicting, err := q.Acquire(patience(t), Request{Kind: &Kind{Name: "read", Prefixes: []string{PrefixRead},
		Policy: func(Node) Policy { return Policy{} }}})
	noError(t, err)
	for range 2 { // the second finds nothing left of the first
		if _, err := fails.Acquire(patience(t)); !errors.Is(err, ErrConflict) {
			t.Errorf("Acquire: %v", err)
		}
	}
	giveBack(t, conflicting)
	giveBack(t, fails.hold(t))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := fails.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	testserver.WaitChildren(t, dir, 0)
}

// Each acquisition, hold and release is told to the hooks, begun and ended, with the context
// of whoever it is; and so is what an envoy does, with that of the first for whom it goes.
func TestLocalTrace(t *testing.T) {
	type name struct{}
	var mu sync.Mutex
	var lines []string
	write := func(ctx context.Context, format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprint(ctx.Value(name{}), ": ", fmt.Sprintf(format, args...)))
	}
	dir := testserver.Path(t)
	p := newProcess(t, dir, Request{}, 1, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			write(ctx, "acquire try=%v", a.Try)
			return ctx, func(r session.AcquireResult) {
				write(ctx, "acquired %v busy=%v position=%d attempts=%d", r.Err, r.Busy, r.Position, r.Attempts)
			}
		},
		Hold: func(ctx context.Context, h session.HoldInfo) func(error) {
			write(ctx, "hold")
			return func(err error) { write(ctx, "held %v", err) }
		},
		Release: func(ctx, holder context.Context, h session.HoldInfo) (context.Context, func(error)) {
			write(holder, "release")
			return ctx, func(err error) { write(holder, "released %v", err) }
		},
		Loss:        func(ctx context.Context, _ session.HoldInfo, _ error) { write(ctx, "loss") },
		Traceparent: func(ctx context.Context) string { write(ctx, "node"); return "" },
	}))
	as := func(who string) context.Context { return context.WithValue(patience(t), name{}, who) }
	a, err := p.Acquire(as("a"))
	noError(t, err)
	b, c := p.waitWith(t, as("b"), 1), p.waitWith(t, as("c"), 2)
	_, err = p.TryAcquire(as("try"))
	if !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	release := a.StartRelease(patience(t))
	l := b.lease(t)
	noError(t, release())
	d := p.waitWith(t, as("d"), 2)
	d.cancel()
	d.fails(t, context.Canceled)
	release = l.StartRelease(patience(t))
	last := c.lease(t)
	noError(t, release())
	testserver.Delete(t, last.Path())
	lostBy(t, last)
	zktest.Eventually(t, testserver.Patience, "the loss", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return lines[len(lines)-1] == "c: loss"
	})
	want := []string{
		"a: acquire try=false", "a: node", "a: hold", "a: acquired <nil> busy=false position=0 attempts=1",
		"b: acquire try=false", "c: acquire try=false",
		"try: acquire try=true", "try: acquired <nil> busy=true position=-1 attempts=0",
		"a: held <nil>", "a: release", "b: hold", "b: acquired <nil> busy=false position=-1 attempts=0", "a: released <nil>",
		"d: acquire try=false", "d: acquired context canceled busy=false position=-1 attempts=0",
		"b: held <nil>", "b: release", "c: node", "c: hold", "c: acquired <nil> busy=false position=1 attempts=1", "b: released <nil>",
		"c: held lock " + dir + ": lost: its node was deleted", "c: loss",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the hooks were told\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if err := last.Release(patience(t)); !errors.Is(err, session.ErrLost) {
		t.Error(err)
	}
}

// Bad input is an error before any I/O.
func TestLocalInvalid(t *testing.T) {
	q, err := New(new(session.Manager), "/a")
	noError(t, err)
	unfair := &Kind{Name: "unfair", Prefixes: []string{PrefixUnfair}, Unfair: true}
	for _, c := range []struct {
		r Request
		n int
	}{
		{Request{Kind: localKind}, 0}, {Request{Kind: localKind}, -1}, {Request{}, 1}, {Request{Kind: unfair}, 1},
	} {
		if l, err := q.Local(c.r, c.n); l != nil || !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
