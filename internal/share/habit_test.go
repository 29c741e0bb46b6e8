package share

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A turn that is known to be over, or that another client has asked for, is neither kept nor handed over, although nobody has
// acted on that yet.
func TestNothingLostGoesOn(t *testing.T) {
	for _, waits := range []bool{false, true} {
		p := newKeeper(t, testserver.Path(t), 9)
		l := p.hold(t)
		tokenOf(t, l) // the watch is set
		lost := p.present()
		waiter := p.begin(expect.Patient(t))
		if waits {
			p.settle(t, 1)
		} else {
			waiter.cancel()
			waiter.fails(t, context.Canceled)
		}
		p.mu.Lock()
		testserver.Delete(t, l.Path())
		expect.Receive(t, "the news", lost.Done())
		lost.disturbed = make(chan struct{}) // as if it were pending
		p.mu.Unlock()
		if removal := p.release(t.Context(), lost, true); removal != nil || p.present() == lost {
			t.Errorf("waits %v: the turn goes on", waits)
		}
		if waits {
			unwanted(t, waiter.lease(t))
		}
		p.want(t, idle)
	}
}

// At most half of the nodes of a manager are kept turns. The one that was unused for longest goes. Nothing stays of those
// that are gone.
func TestKeepAtMostHalf(t *testing.T) {
	dir := testserver.Path(t)
	m := testserver.Connect(t, testserver.Server(t).Addr(0), session.WithNodeLimits(5, 1<<20))
	var all [3]*process
	for i := range all {
		all[i] = &process{Turns: turnsOn(t, m, dir+string(rune('a'+i)), func(q *queue.Queue) *Turns {
			return NewTurns(q, mutex, 0, longestKeep)
		})}
	}
	use := func(p *process) { giveBack(t, p.hold(t)) }
	use(all[0])
	use(all[1])
	leaves := all[1].present()
	use(all[0])
	use(all[2])
	all[1].want(t, idle)
	testserver.WaitChildren(t, dir+"b", 0)
	expect.Receive(t, "the news of that delete", leaves.disturbed) // it would count as that of somebody else for the next turn
	if a, c := all[0].in(), all[2].in(); a != keeping || c != keeping {
		t.Errorf("%v and %v", a, c)
	}
	held := all[0].hold(t) // what is in use is not given up
	use(all[1])
	use(all[2])
	if err := held.Err(); err != nil || all[1].in() != keeping || all[2].in() != keeping {
		t.Errorf("%v, %v, %v", err, all[1].in(), all[2].in())
	}
	giveBack(t, held)
	for _, p := range all {
		p.GiveUpKept()
		p.want(t, idle)
	}
	keptTurns.mu.Lock()
	defer keptTurns.mu.Unlock()
	if of := keptTurns.all[m]; of != nil {
		t.Errorf("%d entries of turns that are gone", of.Len())
	}
}

// A manager whose session may own one node keeps none.
func TestKeepNoneOfOne(t *testing.T) {
	p := newKeeper(t, testserver.Path(t), 0, session.WithNodeLimits(1, 1<<20))
	giveBack(t, p.hold(t))
	if p.in() != idle {
		t.Error(p.in())
	}
}

// A turn that had to be waited for is not kept.
func TestKeepNothingAfterWait(t *testing.T) {
	dir := testserver.Path(t)
	p, other := newKeeper(t, dir, 0), newProcess(t, dir, 1)
	theirs := other.hold(t)
	mine := p.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, theirs)
	giveBack(t, mine.lease(t))
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
	testserver.WaitChildren(t, dir, 0)
}

// Near the end of the sequence numbers no turn is kept, so that the directory becomes empty.
func TestKeepNothingAtLastNumbers(t *testing.T) {
	defer func(old int32) { queue.RestartFrom = old }(queue.RestartFrom)
	queue.RestartFrom = 0
	p := newKeeper(t, testserver.Path(t), 0)
	giveBack(t, p.hold(t))
	if p.in() != idle {
		t.Errorf("state %v", p.in())
	}
}

// The habit skips one turn more each time that one was kept for nothing, up to a bound, and is forgotten with time.
func TestHabit(t *testing.T) {
	var h habit
	now := time.Now()
	for _, want := range []int{0, 1, 2, 4, 8, 16, 32, 64, 64} {
		skipped := 0
		for !h.next() {
			skipped++
		}
		if skipped != want {
			t.Errorf("%d turns are not kept, want %d", skipped, want)
		}
		h.takenAway(now.Add(time.Second))
	}
	if h.isForgotten(now) || !h.isForgotten(now.Add(time.Second)) {
		t.Error("forgotten too early, or never")
	}
}

// The caller of WhenIdle is told when the Turns are idle: after a turn, after an acquisition that was called back, and when it need not be
// remembered any more that a turn was kept for nothing.
func TestWhenIdle(t *testing.T) {
	dir := testserver.Path(t)
	p := processWith(t, dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 0, 300*time.Millisecond) })
	if !p.WhenIdle(func() { t.Error("told of the present") }) {
		t.Fatal("not idle")
	}
	idle := func(what string) {
		t.Helper()
		told := make(chan struct{})
		if p.WhenIdle(func() { close(told) }) {
			t.Errorf("%s: idle already", what)
			return
		}
		expect.Receive(t, what, told)
		if !p.WhenIdle(nil) {
			t.Errorf("%s: not idle", what)
		}
	}
	giveBack(t, p.hold(t))
	idle("a kept turn")

	other := newProcess(t, dir, 1)
	theirs := other.hold(t)
	mine := p.wait(t, 1)
	testserver.WaitChildren(t, dir, 2)
	mine.cancel()
	idle("a call that has ended")
	mine.fails(t, context.Canceled)
	giveBack(t, theirs)

	zktest.Eventually(t, testserver.Patience, "a turn that was kept for nothing", func() bool {
		giveBack(t, p.hold(t))
		giveBack(t, other.hold(t))
		testserver.WaitChildren(t, dir, 0)
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.habit.penalty > 0
	})
	idle("what was learned")
}

// A turn that is granted when nobody waits any more is left.
func TestGrantedToNobody(t *testing.T) {
	for name, open := range map[string]func(*testing.T, string, ...session.Option) *process{
		"kept": func(t *testing.T, dir string, _ ...session.Option) *process { return newKeeper(t, dir, 3) }, "readers": newReaders,
	} {
		t.Run(name, func(t *testing.T) {
			dir := testserver.Path(t)
			other := queueOn(t, testserver.Connect(t, testserver.Server(t).Addr(0)), dir)
			r := mutex
			if name == "readers" {
				r = writer
			}
			theirs, err := other.Acquire(expect.Patient(t), r)
			expect.NoError(t, err)
			p := open(t, dir)
			mine := p.wait(t, 1)
			testserver.WaitChildren(t, dir, 2)
			p.mu.Lock() // the acquisition is granted, and cannot tell
			giveBack(t, theirs)
			testserver.WaitChildren(t, dir, 1)
			p.nextLocked() <- grant{err: context.Canceled}
			p.mu.Unlock()
			mine.fails(t, context.Canceled)
			testserver.WaitChildren(t, dir, 0)
			p.want(t, idle)
		})
	}
}
