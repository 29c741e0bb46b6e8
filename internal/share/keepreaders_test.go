package share

import (
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// Readers of a process hold one turn, one after another and together, without a request. It goes with the last of them, or
// is kept.
func TestReadersShare(t *testing.T) {
	run(t, func(w world) {
		p := w.readers()
		node := p.kept().Path()
		w.ResetRequests()
		one, two := p.hold(), p.hold()
		three, err := p.Acquire(w.Context(), true)
		w.Must(err)
		for _, l := range []*queue.Lease{one, two, three} {
			if l.Path() != node {
				t.Errorf("%s and %s", l.Path(), node)
			}
			w.giveBack(l)
		}
		expect.Requests(t, "a kept turn", w.Server, p.of(), 0)
		p.is(keeping)
		one, two = p.hold(), p.hold()
		w.giveBack(one)
		w.Must(two.Err())
		p.is(holding)
		w.unwanted(two)
		w.nodes(0)
	})
}

// Once a writer waits, a new reader does not join the turn of its process: the writer would wait for the new reader as well.
// The new reader enters the queue behind the writer. The turn ends with the last reader that has it.
func TestReadersDoNotJoinBeforeWriter(t *testing.T) {
	run(t, func(w world) {
		p := w.readers()
		one, two := p.hold(), p.hold()
		written := w.beginIn(w.queue(w.Connect(), dir), writer)
		late := p.begin()
		w.nodes(3)
		w.Want("a try", expect.Err(p.Acquire(w.Context(), true)), queue.ErrBusy)
		w.giveBack(one)
		late.Waits("a writer is ahead")
		written.Waits("one reads")
		w.giveBack(two)
		l := written.Get()
		late.Waits("a writer holds")
		w.giveBack(l)
		w.giveBack(late.Get())
	})
}

// A process gives up a turn that it keeps for its readers when a writer comes, and not when readers of other processes come
// and go. For each contender that comes, the process sends one listing, which shows whether it is a writer. After maxLooks
// listings, the process gives the turn up. A reader that uses the turn sets their count to zero. The process gives the turn up
// at once if many contenders stand in the queue.
func TestReadersLook(t *testing.T) {
	run(t, func(w world) {
		p, q := w.readers(), w.queue(w.Connect(), dir)
		read := func() *queue.Lease { return w.beginIn(q, reader).Get() }
		mine := p.kept()
		w.ResetRequests()
		w.giveBack(read())
		w.Pass(soon)
		if n := w.Count(p.of(zktest.OpGetChildren2)); n == 0 || n > 2 {
			t.Errorf("%d looks for a reader that has come and gone", n)
		}
		if l := p.hold(); l.Path() != mine.Path() {
			t.Error("the turn was given up")
		} else {
			w.giveBack(l)
		}
		w.giveBack(w.beginIn(q, writer).Get())
		p.is(idle)

		p.kept()
		w.ResetRequests()
		for p.in() != idle {
			w.giveBack(read())
			w.Pass(soon / 10)
		}
		if n := w.Count(p.of(zktest.OpGetChildren2)); n == 0 || n > maxLooks {
			t.Errorf("%d looks", n)
		}
		p.kept()
		p.mu.Lock()
		p.turn.looks = maxLooks
		p.mu.Unlock()
		l := p.hold()
		if n := p.present().looks; n != 0 {
			t.Errorf("after a use: %d looks", n)
		}
		w.giveBack(l)
		for range 16 {
			read()
		}
		p.is(idle)
	})
}

// While readers look, because a reader of another process has come, they keep their turn, and those that come wait for the
// listing and then share it. A waiter that gives up does not say that its process holds: those readers are not in its way.
// They do not share the turn if that may not be shared by then, and do not wait for another look either.
func TestReadersGoOnAfterTheirLook(t *testing.T) {
	release := func(w world, _ *process, l *queue.Lease) { w.giveBack(l) }
	for what, c := range map[string]struct {
		before func(w world, p *process, mine *queue.Lease) // the listing
		during func(w world, p *process, mine *queue.Lease)
		shares bool
		waits  bool // for a writer
	}{
		"held":               {nil, nil, true, false},
		"released meanwhile": {nil, release, true, false},
		"kept":               {release, nil, true, false},
		"a writer has come": {nil, func(w world, _ *process, _ *queue.Lease) {
			w.beginIn(w.queue(w.Connect(), dir), writer)
		}, false, true},
		"the node is gone": {nil, func(w world, _ *process, l *queue.Lease) { w.Remove(l.Path()) }, false, false},
		"the turn is over": {nil, func(w world, p *process, _ *queue.Lease) { p.present().Leave(w.Context()) }, false, false},
		"the holder is asked for the lock": {nil, func(w world, _ *process, l *queue.Lease) {
			w.Must(expect.Err(w.Admin().Set(w.Context(), l.Path(), []byte(queue.RevokeMessage), -1)))
		}, false, false},
		"it is kept, and its time is over": {nil, func(w world, p *process, l *queue.Lease) {
			w.giveBack(l)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.turn.until = time.Now()
		}, false, false},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(w world) {
				p, q := w.readers(), w.queue(w.Connect(), dir)
				mine := p.hold()
				w.token(mine) // the watches are set
				if c.before != nil {
					c.before(w, p, mine)
				}
				list := w.HoldRequest(p.of(zktest.OpGetChildren2))
				w.giveBack(w.beginIn(q, reader).Get())
				w.Await(list.Hit())
				late, gone := p.begin(), p.begin()
				gone.Cancel()
				var wait *queue.WaitError
				if err := gone.Err(); errors.As(err, &wait) && wait.Ahead.Own {
					t.Errorf("it says that its process is in the way: %v", err)
				}
				if c.during != nil {
					c.during(w, p, mine)
				}
				list.Release()
				if c.waits {
					late.Waits("a writer is ahead")
					late.Gives()
				} else if l := late.Get(); (l.Path() == mine.Path()) != c.shares {
					t.Errorf("%s, and %s before", l.Path(), mine.Path())
				}
			})
		})
	}
}

// Readers that wait for the same writer share a node. Their turn has had to wait, so nobody joins it later, and it is not
// kept.
func TestReadersWaitTogether(t *testing.T) {
	run(t, func(w world) {
		p := w.readers()
		l := w.beginIn(w.queue(w.Connect(), dir), writer).Get()
		one, two, three := p.begin(), p.begin(), p.begin()
		w.nodes(2)
		two.Gives()
		w.giveBack(l)
		a, b := one.Get(), three.Get()
		if a.Path() != b.Path() {
			t.Errorf("%s and %s", a.Path(), b.Path())
		}
		c := p.hold()
		if c.Path() == a.Path() {
			t.Error("joined, though a writer may wait")
		}
		w.giveBack(a)
		w.giveBack(b)
		w.nodes(1)
	})
}

// A reader that waits until those of its process have listed again waits for no turn that is given up meanwhile: it gets
// another one.
func TestReaderWaitsForNoTurnGivenUp(t *testing.T) {
	for what, giveUp := range map[string]func(*Turns, *turn){
		"to a writer of the process": func(s *Turns, _ *turn) { s.GiveUpKept() },
		"as one too many":            func(s *Turns, kept *turn) { s.giveUp(kept) },
	} {
		run(t, func(w world) {
			p := w.readers()
			p.kept()
			kept, disturbed := p.present(), make(chan struct{})
			close(disturbed)
			p.mu.Lock() // an event has come that the goroutine which follows the turn has not heard of yet
			kept.disturbed = disturbed
			p.mu.Unlock()
			late := p.begin()
			giveUp(p.Turns, kept)
			w.Want(what, late.Err(), nil)
		})
	}
}
