package share

import (
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A contender of another process gets the lock at once from a process that keeps its place, and at the
// release from one that holds.
func TestKeepNewcomer(t *testing.T) {
	for what, inUse := range map[string]bool{"kept": false, "in use": true} {
		t.Run(what, func(t *testing.T) {
			run(t, func(w world) {
				p, other := w.keeps(), w.hands(1)
				w.giveBack(p.hold())
				if !inUse {
					if took := bubble.Took(func() { w.giveBack(other.hold()) }); took > soon {
						t.Errorf("after %v", took)
					}
				} else {
					l := p.hold() // again
					newcomer := other.begin()
					if !isClosed(p.present().disturbed) {
						t.Error("no news of the newcomer")
					}
					w.giveBack(l)
					w.giveBack(newcomer.Get())
				}
				p.is(idle)
				w.nodes(0)
			})
		})
	}
}

// A contender of the same process gets what its process keeps, also one that only tries.
func TestKeepOwnProcess(t *testing.T) {
	run(t, func(w world) {
		p := w.keeps()
		second := w.process(p.m, dir, keepingTurns)
		w.giveBack(p.hold())
		l, err := second.Acquire(w.Context(), true)
		w.Must(err)
		p.is(idle)
		w.giveBack(l)
		w.giveBack(p.hold())
		second.is(idle)
	})
}

// What is not kept: a place of which the listing shows that somebody has come since, a turn that had to be waited for, the
// only node that a session may own, and the last ones before the sequence numbers end.
func TestKeepNothing(t *testing.T) {
	run(t, func(w world) {
		p, other := w.keeps(), w.hands(1)
		w.giveBack(other.hold()) // so that there is a directory
		listing := w.HoldRequest(p.of(zktest.OpGetChildren2))
		mine := p.begin()
		w.Await(listing.Hit())
		theirs := other.begin()
		listing.Release()
		l := mine.Get()
		if p.present().disturbed != nil {
			t.Error("nobody was seen to wait")
		}
		w.giveBack(l)
		second := p.begin()
		w.giveBack(theirs.Get())
		w.giveBack(second.Get())
		p.is(idle)
		w.nodes(0)
		one := w.keeps(session.WithNodeLimits(1, 1<<20))
		w.giveBack(one.hold())
		one.is(idle)
		defer func(old int32) { queue.RestartFrom = old }(queue.RestartFrom)
		queue.RestartFrom = 0
		p.forgetHabit()
		w.giveBack(p.hold())
		p.is(idle)
	})
}

// The place of a lease that nobody has used is not kept. That says nothing about the next one.
func TestUnwantedIsNotKept(t *testing.T) {
	run(t, func(w world) {
		p := w.keeps()
		p.kept() // taken again, and then not used
		for range 2 {
			w.unwanted(p.hold())
			p.is(idle)
			w.nodes(0)
		}
		if p.habit != (habit{}) {
			t.Errorf("%+v", p.habit)
		}
	})
}

// An acquisition looks itself whether a turn that is kept may be used again. Nobody has acted on what has happened: mu is
// locked meanwhile.
func TestKeepLooksFirst(t *testing.T) {
	pending := func(kept *turn) { kept.disturbed = make(chan struct{}) } // as if the event were
	for what, happen := range map[string]func(w world, p *process, kept *turn, other *queue.Queue){
		"somebody has come": func(w world, _ *process, kept *turn, other *queue.Queue) {
			go func() { _, _ = other.Acquire(w.Context(), mutex) }()
			<-kept.disturbed
		},
		"the node is gone": func(w world, _ *process, kept *turn, _ *queue.Queue) {
			w.Must(w.DeleteNode(kept.Path()))
			w.Await(kept.Done())
			pending(kept)
		},
		"another client has asked for the lock": func(w world, _ *process, kept *turn, _ *queue.Queue) {
			w.Must(expect.Err(w.Admin().Set(w.Context(), kept.Path(), []byte(queue.RevokeMessage), -1)))
			w.Await(kept.Last())
		},
		"its time is over":            func(_ world, _ *process, kept *turn, _ *queue.Queue) { kept.until = time.Now() },
		"the watch no longer counts":  func(_ world, _ *process, kept *turn, _ *queue.Queue) { kept.limit = time.Now() },
		"it is in use by a goroutine": func(_ world, _ *process, kept *turn, _ *queue.Queue) { kept.holds++ },
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(w world) {
				p, other, _ := w.keeps(), w.queue(w.Connect(), dir), w.Admin() // no time passes while mu is locked
				p.kept()
				p.mu.Lock()
				happen(w, p, p.turn, other)
				taken := p.useAgainLocked()
				p.mu.Unlock()
				if taken != nil {
					t.Error("the turn was used again")
				}
			})
		})
	}
}

// A turn that may not be used again is left by the next call, which does not wait for others to leave it. A try too gets another
// one.
func TestKeepLeavesWhatIsOver(t *testing.T) {
	for _, try := range []bool{false, true} {
		run(t, func(w world) {
			p := w.keeps()
			node := p.kept().Path()
			p.mu.Lock()
			p.turn.until = time.Now()
			p.mu.Unlock()
			l, err := p.Acquire(w.Context(), try)
			w.Must(err)
			if l.Path() == node {
				t.Error("used again")
			}
			w.giveBack(l)
			p.GiveUpKept()
			w.nodes(0)
		})
	}
}

// A turn that is known to be over, or that another client has asked for, is neither kept nor handed over, although nobody has
// acted on that yet.
func TestNothingLostGoesOn(t *testing.T) {
	for _, waits := range []bool{false, true} {
		run(t, func(w world) {
			p := w.process(w.Connect(), dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 9, longestKeep) })
			l := p.hold()
			w.token(l) // the watch is set
			lost, waiter := p.present(), p.begin()
			if !waits {
				waiter.Gives()
			}
			p.mu.Lock()
			w.Must(w.DeleteNode(l.Path()))
			w.Await(lost.Done())
			lost.disturbed = make(chan struct{}) // as if it were pending
			p.mu.Unlock()
			if removal := p.release(w.Context(), lost, true); removal != nil || p.present() == lost {
				t.Errorf("waits %v: the turn goes on", waits)
			}
			if waits {
				w.unwanted(waiter.Get())
			}
			p.is(idle)
		})
	}
}

// At most half of the nodes of a manager are kept turns. The one that was unused for longest goes. Nothing stays of those
// that are gone.
func TestKeepAtMostHalf(t *testing.T) {
	run(t, func(w world) {
		m := w.Connect(session.WithNodeLimits(5, 1<<20))
		var all [3]*process
		for i := range all {
			all[i] = w.process(m, fmt.Sprint(dir, i), keepingTurns)
		}
		use := func(p *process) { w.giveBack(p.hold()) }
		are := func(want ...condition) {
			t.Helper()
			for i, c := range want {
				all[i].is(c)
			}
		}
		use(all[0])
		use(all[1])
		leaves := all[1].present()
		use(all[0])
		use(all[2])
		are(keeping, idle, keeping)
		if !isClosed(leaves.disturbed) {
			t.Error("the news of that delete would count as that of somebody else for the next turn")
		}
		held := all[0].hold() // what is in use is not given up
		use(all[1])
		use(all[2])
		w.Must(held.Err())
		are(holding, keeping, keeping)
		w.giveBack(held)
		for _, p := range all {
			p.GiveUpKept()
		}
		are(idle, idle, idle)
		keptTurns.mu.Lock()
		defer keptTurns.mu.Unlock()
		if of := keptTurns.all[m]; of != nil {
			t.Errorf("%d entries of turns that are gone", of.Len())
		}
	})
}

// A turn is kept for a session timeout after its listing at most, also if it was used since.
func TestKeptForATimeout(t *testing.T) {
	run(t, func(w world) {
		p := w.process(w.Connect(), dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 0, 6*time.Second) })
		began := time.Now()
		w.giveBack(p.hold())
		w.Pass(5 * time.Second)
		w.giveBack(p.hold())
		for p.in() == keeping {
			w.Pass(time.Second / 10)
		}
		if passed := time.Since(began); passed < bubble.Timeout-soon || passed > bubble.Timeout+soon/2 {
			t.Errorf("kept for %v", passed)
		}
	})
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

// The caller of WhenIdle is told when the Turns are idle: after a turn, after an acquisition that was called back, and when it
// need not be remembered any more that a turn was kept for nothing.
func TestWhenIdle(t *testing.T) {
	run(t, func(w world) {
		p := w.process(w.Connect(), dir, func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 0, soon) })
		if !p.WhenIdle(func() { t.Error("told of the present") }) {
			t.Fatal("not idle")
		}
		becomesIdle := func(what string, ends func()) {
			t.Helper()
			told := make(chan struct{})
			if p.WhenIdle(func() { close(told) }) {
				t.Errorf("%s: idle already", what)
				return
			}
			ends()
			w.Await(told)
			if !p.WhenIdle(nil) {
				t.Errorf("%s: not idle", what)
			}
		}
		byTime := func() {}
		w.giveBack(p.hold())
		becomesIdle("a kept turn", byTime)
		other := w.hands(1)
		theirs, mine := other.hold(), p.begin()
		becomesIdle("a call that has ended", mine.Gives)
		w.giveBack(theirs)
		w.nodes(0)
		w.giveBack(p.hold())
		p.is(keeping)
		w.giveBack(other.hold()) // it was kept for nothing
		p.is(idle)
		becomesIdle("what was learned", byTime)
	})
}
