package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The hooks are called for each acquisition, hold and release, at its beginning and end, with the
// context of its caller. For the shared contender they get the context of the first waiter. The node
// has no traceparent, since it is handed over from one acquisition to the next.
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
	p := newProcess(t, dir, place.Request{}, 1, session.WithTrace(session.Trace{
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
	a, err := p.Acquire(as("a"))
	expect.NoError(t, err)
	data, _, err := testserver.Admin(t).Get(a.Path())
	if err != nil || !strings.HasPrefix(string(data), `{"id":"`) || strings.Contains(string(data), "traceparent") {
		t.Errorf("data %s, %v", data, err)
	}
	b, c := p.waitWith(t, as("b"), 1), p.waitWith(t, as("c"), 2)
	_, err = p.TryAcquire(as("try"))
	if !errors.Is(err, place.ErrBusy) {
		t.Fatal(err)
	}
	release := a.StartRelease(expect.Patient(t), place.Done)
	l := b.lease(t)
	expect.NoError(t, release.Wait())
	d := p.waitWith(t, as("d"), 2)
	d.cancel()
	d.fails(t, context.Canceled)
	release = l.StartRelease(expect.Patient(t), place.Done)
	last := c.lease(t)
	expect.NoError(t, release.Wait())
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
	if err := last.Release(expect.Patient(t), place.Done); !errors.Is(err, session.ErrLost) {
		t.Error(err)
	}
}

// byCaller compares lines by the caller that they are about.
func byCaller(a, b string) int {
	a, _, _ = strings.Cut(a, ":")
	b, _, _ = strings.Cut(b, ":")
	return strings.Compare(a, b)
}
