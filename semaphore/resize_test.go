package semaphore_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A higher limit lets in the waiters that now fit, in order, and no others.
func TestResizeUp(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	held := []*queue.Lease{take(t, s, 1), take(t, s, 1)}
	var calls []*call
	for _, n := range []int{2, 1, 1} {
		calls = append(calls, enter(t, newSem(t, connect(t), dir, 2), n))
	}
	must(t, s.Resize(ctx, 3)) // the first waiter wants two, and is not overtaken
	busy(t, s, 1)
	for _, c := range calls {
		c.waits(t, "two are held of three, and the next wants two")
	}
	must(t, s.Resize(ctx, 5))
	held = append(held, calls[0].get(t), calls[1].get(t))
	busy(t, s, 1)
	calls[2].waits(t, "five are held of five")
	must(t, s.Resize(ctx, 6))
	held = append(held, calls[2].get(t))
	for _, l := range held {
		must(t, l.Err())
	}
	release(t, held...)
}

// A lower limit revokes no lease, and lets no contender in until there is room under it.
func TestResizeDown(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 4)
	var held []*queue.Lease
	for range 4 {
		held = append(held, take(t, s, 1))
	}
	waits := enter(t, newSem(t, connect(t), dir, 4), 1)
	must(t, s.Resize(ctx, 2))
	for _, l := range held {
		must(t, l.Err())
	}
	for i := range 3 {
		busy(t, s, 1)
		waits.waits(t, fmt.Sprintf("%d are held of two", len(held)-i))
		if i < 2 {
			release(t, held[i])
		}
	}
	release(t, held[3])
	l := waits.get(t)
	busy(t, s, 1)
	release(t, held[2], l)
	release(t, take(t, s, 2))
}

// A waiter for more leases than the new limit gets an error, and keeps out no other contender.
func TestResizeBelowRequest(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 3)
	held := take(t, s, 1)
	large := enter(t, newSem(t, connect(t), dir, 3), 3)
	small := enter(t, newSem(t, connect(t), dir, 3), 1)
	small.waits(t, "three are asked for before")
	must(t, s.Resize(ctx, 2))
	err := large.fail(t)
	wantErr(t, "AcquireN of 3 of 2", err, session.ErrInvalid)
	wantText(t, err, "weight 3: the limit is 2")
	in := small.get(t)

	// So does a later contender that does not know the limit.
	_, err = newSem(t, connect(t), dir, 3).AcquireN(ctx, 3)
	wantErr(t, "AcquireN of 3 of 2", err, session.ErrInvalid)
	waitContenders(t, dir, 2)
	release(t, in, held)
}

// The limit of Resize counts, whatever New is given, until ResetLimit.
func TestResizeOverridesNew(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	persistent(t, dir, "")
	must(t, newSem(t, connect(t), dir, 3).Resize(ctx, 2)) // before the first contender
	if got := dataOf(t, dir); got != `{"maxLeases":2,"version":1}` {
		t.Errorf("data %s", got)
	}
	for _, limit := range []int{1, 2, 3, 7} {
		s := newSem(t, connect(t), dir, limit)
		l := take(t, s, 1)
		release(t, take(t, s, 1))
		rest := take(t, s, 1)
		busy(t, s, 1)
		all, err := s.Contenders(ctx)
		if err != nil || len(all) != 2 || !all[1].Holder {
			t.Errorf("contenders %+v, %v", all, err)
		}
		release(t, l, rest)
	}
	s := newSem(t, connect(t), dir, 5)
	release(t, take(t, s, 2))
	must(t, s.ResetLimit(ctx))
	release(t, take(t, s, 5))
	_, err := newSem(t, connect(t), dir, 2).TryAcquire(ctx)
	wantErr(t, "the limit of Resize, after it was taken back", err, queue.ErrConflict)
}

// The limit of Resize stays when nobody uses the semaphore. The limit that New was given does not.
func TestResizeStays(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	must(t, s.Resize(ctx, 5)) // makes the directory
	wantLimit(t, newSem(t, connect(t), dir, 3), 5)
	release(t, take(t, s, 5))
	_, err := s.AcquireN(ctx, 6)
	wantErr(t, "AcquireN of 6 of 5", err, session.ErrInvalid)
	wantText(t, err, "6 leases: the limit is 5")
	must(t, s.Resize(ctx, 1))
	if got := testserver.Children(t, dir); len(got) != 1 || got[0] != "limit" {
		t.Errorf("children %v, want the one that keeps the directory", got)
	}
	wantLimit(t, s, 1)

	must(t, s.ResetLimit(ctx))
	must(t, s.ResetLimit(ctx)) // no error, although no limit was set
	wantLimit(t, s, 2)
	release(t, take(t, s, 2))
	if testserver.HasContainers(t) {
		zktest.Eventually(t, testserver.Patience, "the directory to go", func() bool {
			ok, _, err := testserver.Admin(t).Exists(dir)
			must(t, err)
			return !ok
		})
		wantLimit(t, newSem(t, connect(t), dir, 7), 7)
	}
}

func wantLimit(tb testing.TB, s *semaphore.Semaphore, want int) {
	tb.Helper()
	if got, err := s.Limit(patient(tb)); err != nil || got != want {
		tb.Errorf("limit %d, %v, want %d", got, err, want)
	}
}

// waitContenders waits until there are n contenders in a directory that also has the child of Resize.
func waitContenders(tb testing.TB, dir string, n int) {
	tb.Helper()
	testserver.WaitChildren(tb, dir, n+1)
}

// A fleet changes the number in its code. Resize fixes the limit, both versions run beside each other, and the new version
// calls ResetLimit.
func TestRollingChange(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	before, after := newSem(t, connect(t), dir, 3), newSem(t, connect(t), dir, 5)
	held := []*queue.Lease{take(t, before, 1)}
	must(t, after.Resize(ctx, 3))
	held = append(held, take(t, before, 1), take(t, after, 1))
	busy(t, before, 1)
	busy(t, after, 1)
	must(t, after.Resize(ctx, 5))
	held = append(held, take(t, before, 1), take(t, after, 1))
	busy(t, after, 1)
	must(t, after.ResetLimit(ctx))
	release(t, held...)
	release(t, take(t, after, 5))
}

// A Resize succeeds although its request or its reply is lost.
func TestResizeInDoubt(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*zktest.Proxy, zktest.Match) *zktest.Fault
	}{
		{"the set is lost", (*zktest.Proxy).CutBefore},
		{"its reply is lost", (*zktest.Proxy).CutAfterCommit},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testserver.Path(t)
			proxy := testserver.Proxy(t)
			s := newSem(t, behind(t, proxy), dir, 1)
			l := take(t, s, 1)
			fault := c.fault(proxy, func(r zktest.Request) bool { return r.Op == zktest.OpMulti })
			must(t, s.Resize(patient(t), 2))
			receive(t, "the fault", fault.Hit())
			release(t, take(t, newSem(t, connect(t), dir, 1), 1), l)
		})
	}
}

// Many clients resize at once, up and down, while others acquire and release. There are never more leases held than the
// highest limit allows, and in the end the last limit counts.
func TestResizeUnderLoad(t *testing.T) {
	const most, clients, times = 4, 5, 30
	ctx := patient(t)
	dir := testserver.Path(t)
	persistent(t, dir, "")
	r := referee{limit: most}
	stop, stopped := context.WithCancel(ctx)
	defer stopped()
	var resizers, users errgroup.Group
	for i := range 2 {
		s := newSem(t, connect(t), dir, most)
		resizers.Go(func() error {
			for n := i; stop.Err() == nil; n++ {
				if err := s.Resize(ctx, 1+n%most); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range clients {
		s := newSem(t, connect(t), dir, most)
		users.Go(func() error {
			for range times {
				l, err := s.Acquire(ctx)
				if err != nil {
					return err
				}
				r.enter(l, 1)
				if err := l.Release(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, users.Wait())
	stopped()
	must(t, resizers.Wait())
	s := newSem(t, connect(t), dir, most)
	must(t, s.Resize(ctx, most))
	var held []*queue.Lease
	for range most {
		held = append(held, take(t, s, 1))
		r.enter(held[len(held)-1], 1)
	}
	busy(t, s, 1)
	release(t, held...)
	r.check(t)
}
