package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// resizing begins a Resize, and returns when it waits in the queue behind others.
func resizing(ctx context.Context, tb testing.TB, s *semaphore.Semaphore, n int) <-chan error {
	tb.Helper()
	contenders := func() (all []string) {
		for _, name := range testserver.Children(tb, s.Path()) {
			if _, ok := queue.ParseNode(name); ok {
				all = append(all, name)
			}
		}
		return all
	}
	before := len(contenders())
	done := make(chan error, 1)
	go func() { done <- s.Resize(ctx, n) }()
	zktest.Eventually(tb, testserver.Patience, "Resize to enter the queue", func() bool { return len(contenders()) > before })
	return done
}

// under way fails the test if a Resize has returned, as waits does for an AcquireN.
func underWay(tb testing.TB, done <-chan error, why string) {
	tb.Helper()
	select {
	case err := <-done:
		tb.Fatalf("Resize returned (%v), though %s", err, why)
	default:
	}
}

// A lower limit revokes no lease. Resize waits in the queue for what is to go, first come, first served, and holds it until
// the limit is set.
func TestResizeDown(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 4)
	var held []*queue.Lease
	for range 4 {
		held = append(held, take(t, s, 1))
	}
	ahead := enter(t, newSem(t, connect(t), dir, 4), 1)
	done := resizing(ctx, t, newSem(t, connect(t), dir, 4), 2)
	behind := enter(t, newSem(t, connect(t), dir, 4), 1)
	release(t, held[0])
	inAhead := ahead.get(t)
	release(t, held[1])
	busy(t, s, 1)
	underWay(t, done, "three are held of four")
	behind.waits(t, "it comes after Resize, which waits")
	wantLimit(t, s, 4)
	release(t, held[2])
	must(t, receive(t, "Resize", done))
	wantLimit(t, s, 2)
	behind.waits(t, "two are held of two")
	busy(t, s, 1)
	must(t, held[3].Err())
	release(t, held[3])
	release(t, behind.get(t), inAhead)
	release(t, take(t, s, 2))
}

// A waiter for more leases than the new limit gets an error, and keeps out no other contender. One that came before Resize is
// let in by the old limit.
func TestResizeBelowRequest(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 3)
	held := take(t, s, 1)
	before := enter(t, newSem(t, connect(t), dir, 3), 3)
	done := resizing(ctx, t, s, 2)
	large := enter(t, newSem(t, connect(t), dir, 3), 3)
	small := enter(t, newSem(t, connect(t), dir, 3), 1)
	release(t, held)
	all := before.get(t)
	underWay(t, done, "three are held of three")
	release(t, all)
	must(t, receive(t, "Resize", done))
	err := large.fail(t)
	wantErr(t, "AcquireN of 3 of 2", err, session.ErrInvalid)
	wantText(t, err, "weight 3: the limit is 2")
	in := small.get(t)

	// So does a later contender that does not know the limit.
	later := newSem(t, connect(t), dir, 3)
	_, err = later.AcquireN(ctx, 3)
	wantErr(t, "AcquireN of 3 of 2", err, session.ErrInvalid)
	_, err = later.TryAcquireN(ctx, 3)
	wantErr(t, "TryAcquireN of 3 of 2", err, session.ErrInvalid)
	waitContenders(t, dir, 1)
	release(t, in)
}

// A Resize that waits gives up when its context ends or when it has waited for as long as it may, says who was ahead, and
// leaves nothing behind. The limit is as before.
func TestResizeGivesUp(t *testing.T) {
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	held := take(t, s, 2)
	ctx, cancel := context.WithCancel(patient(t))
	done := resizing(ctx, t, newSem(t, connect(t), dir, 2), 1)
	waits := enter(t, newSem(t, connect(t), dir, 2), 1)
	cancel()
	ended := receive(t, "Resize", done)
	wantErr(t, "Resize", ended, context.Canceled)
	waitedFor := s.Resize(queue.WithMaxWait(patient(t), time.Millisecond), 1)
	wantErr(t, "Resize", waitedFor, queue.ErrMaxWait)
	for _, err := range []error{ended, waitedFor} {
		wantText(t, err, "resize "+dir)
		if wait := new(queue.WaitError); !errors.As(err, &wait) {
			t.Errorf("%v does not say why it had to wait", err)
		}
	}
	wantLimit(t, s, 2)
	testserver.WaitChildren(t, dir, 2)
	release(t, held)
	release(t, waits.get(t))
	testserver.WaitChildren(t, dir, 0)
}

// Two that change the limit at the same time come one after the other. One that waits for what is to go begins again when the
// limit is another by then.
func TestResizeBehindAnother(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 4)
	held := []*queue.Lease{take(t, s, 1), take(t, s, 3)}
	lower := resizing(ctx, t, newSem(t, connect(t), dir, 4), 2)
	must(t, s.Resize(ctx, 6))
	late := newSem(t, connect(t), dir, 4)
	zktest.Eventually(t, testserver.Patience, "Resize to ask for the new difference", func() bool {
		return slices.ContainsFunc(testserver.Children(t, dir), func(name string) bool { return strings.Contains(name, "-x4-lease-") })
	})
	busy(t, late, 1)
	release(t, held[1])
	must(t, receive(t, "Resize", lower))
	wantLimit(t, s, 2)
	release(t, take(t, late, 1), held[0])
	waitContenders(t, dir, 0)
}

// One that waits for what is to go keeps its place when another change ahead of it has lowered the limit. So changes that go on
// keep nobody waiting.
func TestResizeKeepsItsPlace(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 6)
	one, three := take(t, s, 1), take(t, s, 3)
	first := resizing(ctx, t, newSem(t, connect(t), dir, 6), 3)
	proxy := testserver.Proxy(t)
	second := resizing(ctx, t, newSem(t, testserver.Connect(t, proxy.Addr()), dir, 6), 1)
	release(t, one)
	must(t, receive(t, "the first", first))
	wantLimit(t, s, 3)
	release(t, three)
	must(t, receive(t, "the second", second))
	wantLimit(t, s, 1)
	waitContenders(t, dir, 0)
	if n := proxy.Count(zktest.On(zktest.OpCreate, dir)); n != 1 {
		t.Errorf("the second has entered %d times", n)
	}
}

// The limit of Resize counts, whatever New is given, until ResetLimit.
func TestResizeOverridesNew(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	persistent(t, dir, "")
	must(t, newSem(t, connect(t), dir, 3).Resize(ctx, 2)) // before the first contender
	if got := dataOf(t, dir); got != `{"maxLeases":2,"version":2}` {
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

// A Resize succeeds although its request or its reply is lost. It keeps its node until it knows what became of the request.
func TestResizeInDoubt(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*zktest.Proxy, zktest.Match) *zktest.Fault
	}{
		{"the set is lost", (*zktest.Proxy).CutBefore},
		{"its reply is lost", (*zktest.Proxy).CutAfterCommit},
	} {
		for _, to := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, to %d", c.name, to), func(t *testing.T) {
				dir := testserver.Path(t)
				proxy := testserver.Proxy(t)
				s := newSem(t, behind(t, proxy), dir, 2)
				l := take(t, s, 1)
				proxy.ResetRequests()
				multi := zktest.On(zktest.OpMulti, dir+"/")
				fault := c.fault(proxy, multi)
				done := make(chan error, 1)
				go func() { done <- s.Resize(patient(t), to) }()
				receive(t, "the fault", fault.Hit())
				again := proxy.HoldRequest(multi)
				receive(t, "the second try", again.Hit())
				underWay(t, done, "it does not know whether the limit is set")
				made, gone := proxy.Count(zktest.On(zktest.OpCreate, dir)), proxy.Count(zktest.On(zktest.OpDelete, dir))
				if made != 1 || gone != 0 {
					t.Errorf("%d nodes were made, and %d deleted: want the one that stands", made, gone)
				}
				again.Release()
				must(t, receive(t, "Resize", done))
				wantLimit(t, s, to)
				waitContenders(t, dir, 1)
				release(t, l)
			})
		}
	}
}

// A holds all leases, and B and C wait. B's network is cut, and C is let in when A leaves. B, which is ahead of C, does not know
// yet that it may go. Resize counts B, and so waits: every contender that goes in by the old limit is in before the new one is set.
func TestResizeWhileOneIsAway(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	a := take(t, s, 2)
	b := slowly(t, dir, 2, 1)
	c := enter(t, newSem(t, connect(t), dir, 2), 1)
	b.proxy.Refuse(true)
	b.proxy.Disconnect()
	release(t, a)
	inC := c.get(t)
	done := resizing(ctx, t, s, 1)
	late := enter(t, newSem(t, connect(t), dir, 2), 1)
	underWay(t, done, "B may go by the limit of two")
	b.proxy.Refuse(false)
	inB := b.get(t)
	underWay(t, done, "two are held of two")
	release(t, inC)
	must(t, receive(t, "Resize", done))
	late.waits(t, "one is held of one")
	release(t, inB)
	release(t, late.get(t))
}

// A Resize comes between the read and the write of a ResetLimit. The call that writes last counts as a whole: either the
// limit is New's and the directory may go, or neither.
func TestResizeWhileResetLimit(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	persistent(t, dir, "")
	s := newSem(t, connect(t), dir, 2)
	must(t, s.Resize(ctx, 3))
	proxy := testserver.Proxy(t)
	other := newSem(t, behind(t, proxy), dir, 2)
	held := proxy.HoldRequest(zktest.On(zktest.OpMulti, dir+"/"))
	done := make(chan error, 1)
	go func() { done <- other.ResetLimit(ctx) }()
	receive(t, "the transaction of ResetLimit", held.Hit())
	must(t, s.Resize(ctx, 5))
	wantLimit(t, s, 5)
	held.Release()
	must(t, receive(t, "ResetLimit", done))
	wantLimit(t, s, 2)
	testserver.WaitChildren(t, dir, 0)
}

// The counter of a directory is used up, and a limit of Resize keeps the directory. A higher limit can be set all the same.
// ResetLimit lets the directory go, so that counting starts again.
func TestResizeAtTheEndOfTheCounter(t *testing.T) {
	ctx := patient(t)
	const dir = "/limits/old"
	server := zktest.Start(t)
	m := testserver.Connect(t, server.ConnectString(), session.WithTimeout(long))
	s := newSem(t, m, dir, 2)
	must(t, s.Resize(ctx, 5))
	l := take(t, s, 1)
	must(t, testserver.Switch(server).SetSequence(dir, math.MaxInt32))
	must(t, s.Resize(ctx, 6))
	wantErr(t, "Resize to fewer", s.Resize(ctx, 4), queue.ErrSequence)
	wantLimit(t, s, 6)
	wantErr(t, "ResetLimit", s.ResetLimit(ctx), queue.ErrSequence)
	wantLimit(t, s, 6)
	must(t, l.Err())
	release(t, l)
	zktest.Eventually(t, testserver.Patience, "a new directory", func() bool {
		l, err := s.Acquire(ctx)
		if err == nil {
			release(t, l)
		} else {
			wantErr(t, "Acquire", err, queue.ErrSequence)
		}
		return err == nil
	})
	wantLimit(t, s, 2)
}
