package semaphore_test

import (
	"context"
	"path"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A request for several leases is one node, whose name has the number.
func TestOneNodeForAll(t *testing.T) {
	s := newSem(t, connect(t), testserver.Path(t), 5)
	l := take(t, s, 3)
	n, ok := queue.ParseNode(path.Base(l.Path()))
	if !ok || n.Weight != 3 || n.Prefix != queue.PrefixLease || !strings.Contains(l.Path(), "-x3-lease-") {
		t.Errorf("node %s: %+v", l.Path(), n)
	}
	testserver.WaitChildren(t, s.Path(), 1)
	busy(t, s, 3)
	rest := take(t, s, 2)
	release(t, l, rest)
	testserver.WaitChildren(t, s.Path(), 0)
}

// Two clients that want all leases, over and over, do not wait for each other for ever.
func TestAllForBoth(t *testing.T) {
	const times = 50
	dir := testserver.Path(t)
	ctx := patient(t)
	r := referee{limit: 2}
	var g errgroup.Group
	for range 2 {
		s := newSem(t, connect(t), dir, 2)
		g.Go(func() error {
			for range times {
				l, err := s.AcquireN(ctx, 2)
				if err != nil {
					return err
				}
				r.enter(l, 2)
				if err := l.Release(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	r.check(t)
}

// A contender waits for all that came before it, even if it would fit and they do not. When a contender leaves, in whatever
// way, those behind it are let in.
func TestFirstComeFirstServed(t *testing.T) {
	tests := []struct {
		name       string
		limit      int
		hold, wait []int
		cancel     int   // index of a waiter; -1: the first holder releases instead
		in         []int // the waiters that are let in then
	}{
		{"small behind large", 3, []int{2}, []int{3, 1}, -1, []int{0}},
		{"large is cancelled: the small fits", 3, []int{2}, []int{3, 1}, 0, []int{1}},
		{"large is cancelled: two small fit, the third does not", 4, []int{2}, []int{3, 1, 1, 1}, 0, []int{1, 2}},
		{"large is cancelled: the next is large too", 4, []int{2}, []int{4, 3, 1}, 0, nil},
		{"one in the middle is cancelled", 3, []int{3}, []int{1, 3, 1}, 1, nil},
		{"a large release lets several in", 4, []int{3, 1}, []int{1, 2, 1}, -1, []int{0, 1}},
		{"a small release does not do for a large", 4, []int{1, 3}, []int{2, 1}, -1, nil},
		{"all for one", 4, []int{4}, []int{4, 4}, -1, []int{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := testserver.Path(t)
			m := connect(t)
			s := newSem(t, m, dir, tt.limit)
			var held []*queue.Lease
			for _, n := range tt.hold {
				held = append(held, take(t, s, n))
			}
			var calls []*call
			for _, n := range tt.wait {
				calls = append(calls, enter(t, s, n))
			}
			for _, c := range calls {
				c.waits(t, "there is no room")
			}
			gone := -1
			if tt.cancel < 0 {
				release(t, held[0])
				held = held[1:]
			} else {
				gone = tt.cancel
				calls[gone].cancel()
				wantErr(t, "a cancelled call", calls[gone].fail(t), context.Canceled)
				testserver.WaitChildren(t, dir, len(held)+len(calls)-1)
			}
			in := make(map[int]bool)
			for _, i := range tt.in {
				held = append(held, calls[i].get(t))
				in[i] = true
			}
			busy(t, s, 1) // after it, all earlier events have been handled
			for i, c := range calls {
				if !in[i] && i != gone {
					c.waits(t, "it does not fit, or not yet")
				}
			}
			for _, l := range held {
				must(t, l.Err())
			}
			release(t, held...)
			for i, c := range calls {
				if !in[i] && i != gone {
					release(t, c.get(t))
				}
			}
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// A request for more leases than the limit in force is refused at once, whatever New was given. It reads the limit and
// creates no node, so it keeps out no other contender.
func TestMoreThanThereAre(t *testing.T) {
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	m := behind(t, proxy)
	testserver.Session(t, m)
	holder := newSem(t, connect(t), dir, 3)
	held := take(t, holder, 2)
	greedy := newSem(t, m, dir, 3)
	proxy.ResetRequests()
	_, err := greedy.AcquireN(patient(t), 4)
	wantErr(t, "AcquireN of 4 of 3", err, session.ErrInvalid)
	wantText(t, err, "4 leases: the limit is 3")
	if n, writes := proxy.Count(under(dir)), proxy.Count(writes(dir)); n != 1 || writes != 0 {
		t.Errorf("%d requests, %d writes", n, writes)
	}
	must(t, holder.Resize(patient(t), 6))
	release(t, held, take(t, holder, 1), take(t, greedy, 3))
	release(t, take(t, greedy, 4))
}

// A node of another program that asks for more leases than there are keeps out other contenders only as long as it exists.
func TestForgedTooMany(t *testing.T) {
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2)
	held := take(t, s, 1)
	forged := forge(t, dir, "x9-lease-")
	waits := enter(t, s, 1)
	waits.waits(t, "nine are asked for before")
	testserver.Delete(t, forged)
	release(t, waits.get(t), held)
}

// The reply to a create is lost, or the create itself. In the end there is one node of the right weight, and nothing else.
func TestCreateInDoubt(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*zktest.Proxy, zktest.Match) *zktest.Fault
	}{
		{"the create is lost", (*zktest.Proxy).CutBefore},
		{"its reply is lost", (*zktest.Proxy).CutAfterCommit},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testserver.Path(t)
			persistent(t, dir, "")
			proxy := testserver.Proxy(t)
			s := newSem(t, behind(t, proxy), dir, 4)
			fault := c.fault(proxy, zktest.On(zktest.OpCreate, dir+"/"))
			l := take(t, s, 3)
			receive(t, "the fault", fault.Hit())
			if names := testserver.Children(t, dir); len(names) != 1 || names[0] != path.Base(l.Path()) {
				t.Errorf("children %v, want that of %s", names, l.Path())
			}
			other := newSem(t, connect(t), dir, 4)
			busy(t, other, 2)
			release(t, take(t, other, 1), l)
			testserver.WaitChildren(t, dir, 0)
		})
	}
}
