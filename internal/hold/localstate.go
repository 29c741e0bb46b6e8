package hold

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/place"
)

// join takes the place that is kept, joins the readers that hold, or adds a waiter. A caller that gets neither contends
// by itself, and its place may be kept if lazy is true.
func (l *Local) join(ctx context.Context, try bool) (t *tenure, w *waiter, lazy bool, err error) {
	l.mu.Lock()
	t, gone := l.takeLocked()
	switch {
	case t != nil:
	case try:
		lazy, err = l.tryLocked()
	default:
		w, lazy = l.waitLocked(ctx, gone)
	}
	l.mu.Unlock()
	gone.GiveUp()
	return t, w, lazy, err
}

// tryLocked has a caller that does not wait contend by itself. It fails with ErrBusy while another goroutine
// of this process holds or waits. Readers do not block each other, so a reader contends in any case.
func (l *Local) tryLocked() (lazy bool, err error) {
	idle := l.idleLocked()
	if !idle && !l.many {
		return false, place.ErrBusy
	}
	l.trying = !l.many
	return idle && l.nextLazyLocked(), nil
}

// waitLocked adds a waiter. If the Local is idle, it adds none: the caller contends by itself. For readers, and
// behind a place of ours that has to leave first, the Local begins to contend.
func (l *Local) waitLocked(ctx context.Context, gone *place.Turn) (w *waiter, lazy bool) {
	if gone == nil && l.idleLocked() && !l.many {
		l.trying = true
		return nil, l.nextLazyLocked()
	}
	l.splitLocked()
	w = &waiter{ctx: ctx, got: make(chan grant, 1), in: l.waiting}
	w.at = l.waiting.PushBack(w)
	if l.idleLocked() {
		l.contendLocked(&sharedContender{before: gone})
	}
	return w, false
}

// takeLocked takes the place that is kept, or shares that of readers, and returns its turn. If a place
// that is kept must not be used again, takeLocked leaves it, and returns the turn as gone: the caller
// gives it up. The clock is asked last.
func (l *Local) takeLocked() (t *tenure, gone *place.Turn) {
	if t = l.turn; t == nil {
		return nil, nil
	}
	now := time.Now()
	switch kept := t.Kept(); {
	case kept && t.setting:
		return nil, nil
	case kept && !(t.usable(now) && t.Stands()):
		return nil, l.leaveLocked()
	case kept:
	case l.many && t.undisturbed(now) && t.Stands():
	default:
		return nil, nil
	}
	if !t.useLocked() {
		return nil, nil
	}
	return t, nil
}

// useLocked grants a further lease of the turn. It returns false if the turn is over. The Local's mu is held.
func (t *tenure) useLocked() bool {
	if !t.Use() {
		return false
	}
	t.leases++
	t.used, t.looks = true, 0
	return true
}

// splitLocked makes room for a new contender beside a turn that readers hold, or a contender of readers,
// if another contender may have come since: a reader that comes now has its place behind that one.
// The turn or contender goes on for those that are in it.
func (l *Local) splitLocked() {
	switch {
	case !l.many:
	case l.turn != nil && !l.turn.Kept() && !l.turn.setting:
		l.turn = nil
	case l.shared != nil && !l.shared.Open():
		l.shared, l.waiting = nil, &waiters{}
	}
}

// startTrying reports whether the Local was idle, and whether the place that is tried for may be kept. Readers have a
// shared contender.
func (l *Local) startTrying() (lazy, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.many {
		return false, false
	}
	lazy, err := l.tryLocked()
	return lazy, err == nil
}

// goOn makes the contender of a caller, which has to wait, the shared one. The caller is the first of its waiters.
func (l *Local) goOn(g *place.Acquisition) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying = false
	w := &waiter{ctx: g.Context(), got: make(chan grant, 1), in: l.waiting}
	w.at = l.waiting.PushFront(w)
	l.contendLocked(&sharedContender{stands: g})
	return w
}

// stopTrying follows a try that was not granted.
func (l *Local) stopTrying() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying = false
	l.contendLocked(&sharedContender{})
}

// nextLazyLocked reports whether the next place may be kept. It is called once for each place.
func (l *Local) nextLazyLocked() bool { return l.lazy > 0 && l.habit.next() }

// contendLocked starts a shared contender, unless nobody waits. The contender may have a turn
// that has just ended, or go on for a caller.
func (l *Local) contendLocked(c *sharedContender) {
	first := l.waiting.Front()
	if first == nil {
		return
	}
	// Hooks get the values of the first waiter's context, even if that waiter withdraws.
	ctx, cancel := context.WithCancel(context.WithoutCancel(first.Value.(*waiter).ctx))
	c.waiting, c.cancel = l.waiting, cancel
	if c.stands != nil {
		c.lazy = c.stands.Lazy()
		c.Takes(c.stands)
	} else {
		c.lazy = l.nextLazyLocked()
	}
	l.shared, l.waiting.by = c, c
	go l.contend(ctx, c)
}

// contend runs the shared contender until it is granted, fails, or is called back.
func (l *Local) contend(ctx context.Context, me *sharedContender) {
	defer me.cancel()
	defer me.Placed.Tell()
	g := l.q.Acquisition(ctx, l.request(), &place.Entry{Shown: &me.Shown, Lazy: me.lazy, Before: me.before})
	if me.stands != nil {
		g.TakeOver(me.stands)
	}
	returned := false
	defer func() {
		if !returned { // a policy has ended this goroutine
			l.fail(me, g.Result, place.ErrCut)
		}
	}()
	err := g.Granted()
	returned = true
	if err != nil {
		l.fail(me, g.Result, err)
		return
	}
	l.mu.Lock()
	if me.waiting.by != me { // called back
		l.mu.Unlock()
		g.Quit()
		return
	}
	l.endLocked(me)
	t := l.holdLocked(g)
	first, others := me.waiting.next(), []*waiter(nil)
	if l.many {
		others = l.admitLocked(t, me.waiting)
	}
	setAgain := l.startSettingLocked(t)
	l.mu.Unlock()
	t.guard()
	if setAgain {
		go l.setAgain(t)
	}
	first.got <- grant{turn: t, result: g.Result}
	t.passTo(others)
}

// holdLocked begins a turn with a contender that was granted, and grants the first lease of it. The turn is
// the Local's, unless the Local has turned to another contender since.
func (l *Local) holdLocked(g *place.Acquisition) *tenure {
	t := newTenure(l, g)
	if l.idleLocked() {
		l.turn, l.left = t, l.most
	}
	return t
}

// admitLocked grants all waiters a lease of the turn. The caller tells them.
func (l *Local) admitLocked(t *tenure, waiting *waiters) (admitted []*waiter) {
	for waiting.Len() > 0 && t.useLocked() {
		admitted = append(admitted, waiting.next())
	}
	return admitted
}

// passTo gives the turn to waiters that were granted a lease.
func (t *tenure) passTo(admitted []*waiter) {
	for _, w := range admitted {
		w.got <- grant{turn: t, result: hooks.AcquireResult{Position: -1}} // does not block: there is room
	}
}

// next removes the first waiter. Local.mu is held.
func (ws *waiters) next() *waiter {
	w := ws.Remove(ws.Front()).(*waiter)
	w.at = nil
	return w
}

// fail gives all waiters the error of the shared contender, unless it was called back.
func (l *Local) fail(me *sharedContender, result hooks.AcquireResult, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if me.waiting.by != me {
		return
	}
	l.endLocked(me)
	for me.waiting.Len() > 0 {
		me.waiting.next().got <- grant{result: result, err: err} // does not block: there is room
	}
}

// endLocked takes note that a contender does not contend any more.
func (l *Local) endLocked(c *sharedContender) {
	c.waiting.by = nil
	if l.shared == c {
		l.shared = nil
	}
}

// withdraw removes a waiter, and reports whether it was still waiting. The last waiter calls the
// shared contender back, whose node is then deleted for certain.
func (l *Local) withdraw(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.at == nil {
		return false
	}
	w.in.Remove(w.at)
	w.at = nil
	if by := w.in.by; w.in.Len() == 0 && by != nil {
		by.cancel()
		l.endLocked(by)
		by.Depart()
	}
	return true
}
