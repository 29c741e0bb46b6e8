package share

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The holder finds out that the session or the node is lost. The waiters get another turn, whatever
// the holder does.
func TestLoss(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, p *process, l *queue.Lease)
	}{
		{"session", func(t *testing.T, p *process, _ *queue.Lease) {
			expect.NoError(t, p.proxy.Expire(expect.Patient(t), testserver.Session(t, p.m).ID()))
		}},
		{"node", func(t *testing.T, _ *process, l *queue.Lease) { testserver.Delete(t, l.Path()) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newProcess(t, dir, 10)
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
			if err := l.Release(expect.Patient(t)); !errors.Is(err, session.ErrLost) {
				t.Errorf("Release of what was lost: %v", err)
			}
			if next.Err() != nil || !errors.Is(first.Err(), queue.ErrReleased) {
				t.Errorf("the next: %v, the first: %v", next.Err(), first.Err())
			}
			giveBack(t, next)
			giveBack(t, last.lease(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// The session may have only one node, that of the present turn. The waiters still get the next turn:
// their contender enters when the node is gone, in whatever way the turn ends.
func TestAtLimitOfNodes(t *testing.T) {
	for what, end := range map[string]func(*testing.T, *queue.Lease){
		"released": giveBack,
		"deleted by an operator": func(t *testing.T, l *queue.Lease) {
			testserver.Delete(t, l.Path())
			lostBy(t, l)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newProcess(t, dir, 1, session.WithNodeLimits(1, 1<<20))
			first := p.hold(t)
			second, third := p.wait(t, 1), p.wait(t, 2)
			giveBack(t, first)
			l := second.lease(t)
			end(t, l)
			giveBack(t, third.lease(t))
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// If other locks have all the nodes that the session may have, the waiters get the error.
func TestBeyondLimitOfNodes(t *testing.T) {
	dir := testserver.Path(t)
	p := newProcess(t, dir, 1, session.WithNodeLimits(1, 1<<20))
	q := queueOn(t, p.m, testserver.Path(t))
	other, err := q.Acquire(expect.Patient(t), mutex)
	expect.NoError(t, err)
	if _, err := p.Acquire(expect.Patient(t), false); !errors.Is(err, session.ErrTooManyNodes) {
		t.Errorf("Acquire: %v", err)
	}
	giveBack(t, other)
	giveBack(t, p.hold(t))
	testserver.WaitChildren(t, dir, 0)
}

// The manager is closed while turns begin, are handed over and end, and the directory comes and goes
// with them. All holders and waiters get an error, and no node is left.
func TestCloseMeanwhile(t *testing.T) {
	for round := range longtest.Pick(6, 12) {
		dir := testserver.Path(t)
		p := newProcess(t, dir, 1+round%3)
		released, done := context.WithCancel(context.Background())
		done() // nobody waits for a release
		held := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					l, err := p.Acquire(context.Background(), false)
					if errors.Is(err, session.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					_ = l.Release(released)
					select {
					case held <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 10 * round {
			<-held
		}
		expect.NoError(t, p.m.Close())
		all.Wait()
		testserver.WaitChildren(t, dir, 0)
		p.mu.Lock()
		if !p.isIdleLocked() {
			t.Errorf("trying: %v; a turn: %v; an acquisition: %v; %d waiters", p.trying, p.turn != nil, p.acquiring != nil, p.waiting.Len())
		}
		p.mu.Unlock()
	}
}

// The hooks are called for each acquisition, hold and release, at its beginning and end, with the
// context of its caller. For the shared contender they get the context of the first waiter. The node
// has no traceparent, since it is handed over from one acquisition to the next.
func TestTrace(t *testing.T) {
	type name struct{}
	var mu sync.Mutex
	var lines []string
	write := func(ctx context.Context, format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprint(ctx.Value(name{}), ": ", fmt.Sprintf(format, args...)))
	}
	dir := testserver.Path(t)
	p := newProcess(t, dir, 1, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			write(ctx, "acquire try=%v local=%v weight=%d", a.Try, a.Local, a.Weight)
			return ctx, func(r session.AcquireResult) {
				// The reason for a wait has a time in it.
				outcome, _, _ := strings.Cut(fmt.Sprint(r.Err), " (held by this process for ")
				write(ctx, "acquired %v busy=%v position=%d attempts=%d", outcome, r.Busy, r.Position, r.Attempts)
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
		Traceparent: func(ctx context.Context) string { write(ctx, "node"); return "00-trace-parent-01" },
	}))
	as := func(who string) context.Context { return context.WithValue(expect.Patient(t), name{}, who) }
	a, err := p.Acquire(as("a"), false)
	expect.NoError(t, err)
	data, _, err := testserver.Admin(t).Get(a.Path())
	if err != nil || !strings.HasPrefix(string(data), `{"id":"`) || strings.Contains(string(data), "traceparent") {
		t.Errorf("data %s, %v", data, err)
	}
	b, c := p.waitWith(t, as("b"), 1), p.waitWith(t, as("c"), 2)
	_, err = p.Acquire(as("try"), true)
	if !errors.Is(err, queue.ErrBusy) {
		t.Fatal(err)
	}
	release := a.StartRelease(expect.Patient(t), true)
	l := b.lease(t)
	expect.NoError(t, release.Wait(expect.Patient(t)))
	d := p.waitWith(t, as("d"), 2)
	d.cancel()
	d.fails(t, context.Canceled)
	release = l.StartRelease(expect.Patient(t), true)
	last := c.lease(t)
	expect.NoError(t, release.Wait(expect.Patient(t)))
	testserver.Delete(t, last.Path())
	lostBy(t, last)
	zktest.Eventually(t, testserver.Patience, "the loss", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.HasPrefix(lines[len(lines)-1], "c: held ")
	})
	want := []string{
		"a: acquire try=false local=true weight=1", "a: node", "a: hold", "a: acquired <nil> busy=false position=0 attempts=1",
		"b: acquire try=false local=true weight=1", "c: acquire try=false local=true weight=1",
		"try: acquire try=true local=true weight=1", "try: acquired <nil> busy=true position=-1 attempts=0",
		"a: held <nil>", "a: release", "b: hold", "b: acquired <nil> busy=false position=-1 attempts=0", "a: released <nil>",
		"d: acquire try=false local=true weight=1", "d: acquired context canceled busy=false position=-1 attempts=0",
		"b: held <nil>", "b: release", "c: node", "c: hold", "c: acquired <nil> busy=false position=1 attempts=1", "b: released <nil>",
		"c: loss", "c: held lock " + dir + ": lost: its node was deleted",
	}
	for i, line := range lines {
		// The node before it is in its listing, or has been deleted by then.
		lines[i] = strings.Replace(line, "c: acquired <nil> busy=false position=0", "c: acquired <nil> busy=false position=1", 1)
	}
	// A hand-over waits for no hook, so the next hold can begin before the hooks for the last one are called.
	slices.SortStableFunc(lines, byCaller)
	slices.SortStableFunc(want, byCaller)
	if !slices.Equal(lines, want) {
		t.Errorf("the hooks were told\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if err := last.Release(expect.Patient(t)); !errors.Is(err, session.ErrLost) {
		t.Error(err)
	}
}

// byCaller compares lines by the caller that they are about.
func byCaller(a, b string) int {
	a, _, _ = strings.Cut(a, ":")
	b, _, _ = strings.Cut(b, ":")
	return strings.Compare(a, b)
}
