package share

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// others returns the queue as another process has it.
func others(t *testing.T, dir string) *queue.Queue {
	t.Helper()
	return queueOn(t, testserver.Connect(t, testserver.Server(t).Addr(0)), dir)
}

// read takes the lock as a reader of another process.
func read(t *testing.T, q *queue.Queue) *queue.Lease {
	t.Helper()
	l, err := q.Acquire(expect.Patient(t), reader)
	expect.NoError(t, err)
	return l
}

// Readers of a process hold one turn, one after another and together, without a request. It goes with the last of them, or
// is kept.
func TestReadersShare(t *testing.T) {
	dir := testserver.Path(t)
	p := newReaders(t, dir)
	node := p.kept(t).Path()
	p.proxy.ResetRequests()
	for range 20 {
		one, two := p.hold(t), p.hold(t)
		three, err := p.Acquire(expect.Patient(t), true)
		expect.NoError(t, err)
		for _, l := range []*queue.Lease{one, two, three} {
			if l.Path() != node {
				t.Errorf("%s and %s", l.Path(), node)
			}
			giveBack(t, l)
		}
	}
	if n := p.proxy.Count(all); n != 0 {
		t.Errorf("%d requests", n)
	}
	if p.in() != keeping {
		t.Error(p.in())
	}
	one, two := p.hold(t), p.hold(t)
	giveBack(t, one)
	if two.Err() != nil || p.in() != holding {
		t.Errorf("%v, %v", two.Err(), p.in())
	}
	unwanted(t, two)
	testserver.WaitChildren(t, dir, 0)
}

// A reader does not join those of its process once a writer waits, whom they keep waiting. It has a node of its own, behind
// the writer's. The node of the others goes with the last of them.
func TestReadersDoNotJoinBeforeWriter(t *testing.T) {
	dir := testserver.Path(t)
	p := newReaders(t, dir)
	one, two := p.hold(t), p.hold(t)
	turn := p.present()
	written := beginIn(others(t, dir), expect.Patient(t), writer)
	expect.Receive(t, "the news", turn.disturbed)
	late := p.begin(expect.Patient(t)) // may find the listing under way that shows the writer
	testserver.WaitChildren(t, dir, 3)
	if _, err := p.Acquire(expect.Patient(t), true); !errors.Is(err, queue.ErrBusy) {
		t.Errorf("a try: %v", err)
	}
	giveBack(t, one)
	late.pending(t)
	written.pending(t)
	giveBack(t, two)
	w := written.lease(t)
	late.pending(t)
	giveBack(t, w)
	giveBack(t, late.lease(t))
}

// A turn of readers that is kept goes when a writer comes, and stays while other readers come and go. They look with one
// request who has come.
func TestReadersLook(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newReaders(t, dir), others(t, dir)
	mine := p.kept(t)
	p.proxy.ResetRequests()
	giveBack(t, read(t, q))
	zktest.Eventually(t, testserver.Patience, "the look", func() bool {
		turn := p.present()
		p.mu.Lock()
		defer p.mu.Unlock()
		return turn != nil && turn.looks > 0 && turn.isAlone(time.Now())
	})
	if n := p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir)); n == 0 || n > 2 {
		t.Errorf("%d looks for a reader that has come and gone", n)
	}
	if l := p.hold(t); l.Path() != mine.Path() {
		t.Error("the turn was given up")
	} else {
		giveBack(t, l)
	}
	l, err := q.Acquire(expect.Patient(t), writer)
	expect.NoError(t, err)
	giveBack(t, l)
	p.want(t, idle)
	testserver.WaitChildren(t, dir, 0)
}

// While readers look, because a reader of another process has come, they keep their turn, and those that come wait for the
// listing and then share it. A waiter that gives up does not say that its process holds: those readers are not in its way.
func TestReadersWaitForTheirLook(t *testing.T) {
	for what, c := range map[string]struct {
		before func(*testing.T, *process, *queue.Lease) // the listing
		within func(*testing.T, *process, *queue.Lease) // while it is under way
	}{
		"held": {nothing, nothing},
		"released meanwhile": {nothing, func(t *testing.T, p *process, l *queue.Lease) {
			giveBack(t, l)
			p.want(t, keeping)
		}},
		"kept": {func(t *testing.T, _ *process, l *queue.Lease) { giveBack(t, l) }, nothing},
	} {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t)
			p, q := newReaders(t, dir), others(t, dir)
			mine := p.hold(t)
			tokenOf(t, mine) // the watches are set
			c.before(t, p, mine)
			list := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
			theirs := read(t, q)
			expect.Receive(t, "the look", list.Hit())
			c.within(t, p, mine)
			w := p.wait(t, 1)
			gone := p.wait(t, 2)
			gone.cancel()
			if g := <-gone.done; !errors.Is(g.err, context.Canceled) || strings.Contains(g.err.Error(), "held by") {
				t.Errorf("Acquire: %v", g.err)
			}
			list.Release()
			l := w.lease(t)
			if l.Path() != mine.Path() {
				t.Errorf("%s, behind %s: it has made a node of its own", l.Path(), mine.Path())
			}
			giveBack(t, l)
			giveBack(t, theirs)
			_ = mine.Release(expect.Patient(t))
		})
	}
}

func nothing(*testing.T, *process, *queue.Lease) {}

// Readers that wait for a look do not share the turn if that may not be shared by then. They do not wait for another look
// either.
func TestReadersGoOnAfterTheirLook(t *testing.T) {
	for what, during := range map[string]func(*testing.T, *process, *queue.Lease, *queue.Queue){
		"a writer has come": func(t *testing.T, _ *process, l *queue.Lease, q *queue.Queue) {
			w := beginIn(q, expect.Patient(t), writer)
			t.Cleanup(func() {
				w.cancel()
				<-w.done
			})
		},
		"the node is gone": func(t *testing.T, _ *process, l *queue.Lease, _ *queue.Queue) { testserver.Delete(t, l.Path()) },
		"the turn is over": func(t *testing.T, p *process, _ *queue.Lease, _ *queue.Queue) {
			p.present().Leave(t.Context())
		},
		"the holder is asked for the lock": func(t *testing.T, p *process, l *queue.Lease, _ *queue.Queue) {
			revoke(t, l)
			expect.Receive(t, "the request", p.present().Last())
		},
		"it is kept, and its time is over": func(t *testing.T, p *process, l *queue.Lease, _ *queue.Queue) {
			giveBack(t, l)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.turn.until = time.Now()
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t)
			p, q := newReaders(t, dir), others(t, dir)
			mine := p.hold(t)
			tokenOf(t, mine)
			list := p.proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, dir))
			giveBack(t, read(t, q))
			expect.Receive(t, "the look", list.Hit())
			w := p.wait(t, 1)
			n := len(testserver.Children(t, dir))
			during(t, p, mine, q)
			if what == "a writer has come" {
				testserver.WaitChildren(t, dir, n+1)
			}
			list.Release()
			if what == "a writer has come" {
				testserver.WaitChildren(t, dir, n+2)
				w.pending(t)
				w.cancel()
				w.fails(t, context.Canceled)
			} else if l := w.lease(t); l.Path() == mine.Path() {
				t.Error("it shares the turn")
			} else {
				giveBack(t, l)
			}
			_ = mine.Release(expect.Patient(t))
		})
	}
}

// Readers that keep a turn look again while other readers come and go, but not for ever. A use of their own lets them begin
// to count anew. In a crowd they do not look again.
func TestReadersStopLooking(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newReaders(t, dir), others(t, dir)
	p.kept(t)
	p.proxy.ResetRequests()
	zktest.Eventually(t, testserver.Patience, "the end of the turn", func() bool {
		giveBack(t, read(t, q))
		return p.in() == idle
	})
	if n := p.proxy.Count(zktest.On(zktest.OpGetChildren2, dir)); n == 0 || n > maxLooks {
		t.Errorf("%d looks", n)
	}
	testserver.WaitChildren(t, dir, 0)
	p.forgetHabit()
	p.kept(t)
	p.mu.Lock()
	p.turn.looks = maxLooks
	p.mu.Unlock()
	l := p.hold(t)
	if n := p.present().looks; n != 0 {
		t.Errorf("after a use: %d looks", n)
	}
	giveBack(t, l)

	var crowd []*queue.Lease
	for range 16 {
		crowd = append(crowd, read(t, q))
	}
	p.want(t, idle)
	for _, l := range crowd {
		giveBack(t, l)
	}
}

// Readers that wait for the same writer share a node. Their turn has had to wait, so nobody joins it later, and it is not
// kept.
func TestReadersWaitTogether(t *testing.T) {
	dir := testserver.Path(t)
	p, q := newReaders(t, dir), others(t, dir)
	l, err := q.Acquire(expect.Patient(t), writer)
	expect.NoError(t, err)
	one, two, three := p.wait(t, 1), p.wait(t, 2), p.wait(t, 3)
	testserver.WaitChildren(t, dir, 2)
	two.cancel()
	two.fails(t, context.Canceled)
	giveBack(t, l)
	a, b := one.lease(t), three.lease(t)
	if a.Path() != b.Path() {
		t.Errorf("%s and %s", a.Path(), b.Path())
	}
	c := p.hold(t)
	if c.Path() == a.Path() {
		t.Error("joined, though a writer may wait")
	}
	giveBack(t, a)
	giveBack(t, b)
	testserver.WaitChildren(t, dir, 1)
	unwanted(t, c)
	testserver.WaitChildren(t, dir, 0)
}

// A reader that waits until those of its process have listed again waits for no turn that is given up meanwhile: it gets
// another one.
func TestReaderWaitsForNoTurnGivenUp(t *testing.T) {
	for name, giveUp := range map[string]func(*Turns, *turn){
		"to a writer of the process": func(s *Turns, _ *turn) { s.GiveUpKept() },
		"as one too many":            func(s *Turns, kept *turn) { s.giveUp(kept) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := testserver.Path(t)
			p := newReaders(t, dir)
			p.kept(t)
			kept, disturbed := p.present(), make(chan struct{})
			close(disturbed)
			p.mu.Lock() // an event has come that the goroutine which follows the turn has not heard of yet
			kept.disturbed = disturbed
			p.mu.Unlock()
			w := p.wait(t, 1)
			giveUp(p.Turns, kept)
			giveBack(t, w.lease(t))
			p.GiveUpKept()
			testserver.WaitChildren(t, dir, 0)
		})
	}
}
