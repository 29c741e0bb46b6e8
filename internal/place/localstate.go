package place

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// join takes the place that is kept, joins the readers that hold, or adds a waiter. If the Local is idle, it
// returns neither: the caller contends, and its place may be kept if lazy is true. For readers, and behind a
// place of ours that has to leave first, the Local begins to contend. If too many are ahead already, join fails
// with ErrBusy.
func (l *Local) join(ctx context.Context) (t *turn, w *waiter, lazy bool, err error) {
	l.mu.Lock()
	t, gone := l.takeLocked()
	if t == nil && gone == nil {
		err = l.letInLocked()
	}
	if t != nil || err != nil {
		l.mu.Unlock()
		return t, nil, false, err
	}
	if l.idleLocked() && !l.many && gone == nil {
		defer l.mu.Unlock()
		l.trying = true
		return nil, nil, l.nextLazyLocked(), nil
	}
	l.splitLocked()
	w = &waiter{ctx: ctx, got: make(chan grant, 1), in: l.waiting}
	w.at = l.waiting.PushBack(w)
	if l.idleLocked() {
		l.contendLocked(&sharedContender{before: gone, fresh: true})
	}
	l.mu.Unlock()
	gone.giveUp()
	return nil, w, false, nil
}

// takeLocked takes the place that is kept, or shares that of readers, and returns its turn. If a place
// that is kept must not be used again, takeLocked leaves it, and returns the turn as gone: the caller
// gives it up. The clock is asked last.
func (l *Local) takeLocked() (t, gone *turn) {
	if t = l.turn; t == nil {
		return nil, nil
	}
	now := time.Now()
	switch kept := t.is() == decide.Keeping; {
	case kept && t.tenure.setting:
		return nil, nil
	case kept && !(t.tenure.usable(now) && t.stands()):
		return nil, l.leaveLocked()
	case kept:
	case l.many && t.tenure.undisturbed(now) && t.stands():
	default:
		return nil, nil
	}
	if !t.useLocked() {
		return nil, nil
	}
	return t, nil
}

// useLocked grants a further lease of the turn. It returns false if the turn is over. The Local's mu is held.
func (t *turn) useLocked() bool {
	if _, ok := t.step(decide.Used); !ok {
		return false
	}
	t.tenure.leases++
	t.tenure.used, t.tenure.looks = true, 0
	t.tenure.keptAt.Store(0)
	return true
}

// splitLocked makes room for a new contender beside a turn that readers hold, or a contender of readers,
// if another contender may have come since: a reader that comes now has its place behind that one.
// The turn or contender goes on for those that are in it.
func (l *Local) splitLocked() {
	switch {
	case !l.many:
	case l.turn != nil && l.turn.is() != decide.Keeping && !l.turn.tenure.setting:
		l.turn = nil
	case l.shared != nil && !l.shared.open():
		l.shared, l.waiting = nil, &waiters{}
	}
}

// take is takeLocked for a try. It gives up a place that must not be used again.
func (l *Local) take() *turn {
	l.mu.Lock()
	t, gone := l.takeLocked()
	l.mu.Unlock()
	gone.giveUp()
	return t
}

// startTrying reports whether the Local was idle, and whether the place that is tried for may be kept.
func (l *Local) startTrying() (lazy, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.idleLocked() || l.many {
		return false, false
	}
	l.trying = true
	return l.nextLazyLocked(), true
}

// tryShared is TryAcquire for readers. Others of this process that hold or wait are not in their way.
func (l *Local) tryShared(c *acquiring) (*Lease, error) {
	l.mu.Lock()
	lazy := l.idleLocked() && l.nextLazyLocked()
	l.mu.Unlock()
	a, err := c.acquisition(l.request(), &entry{try: true, lazy: lazy}).granted()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	t := l.holdLocked(c.ctx, a)
	l.mu.Unlock()
	t.guard()
	return t.begin(c.ctx), nil
}

// goOn makes an attempt that has run in the goroutine of its caller, and has to wait, the shared contender. tries
// counts the attempts so far. The caller is the first of its waiters.
func (l *Local) goOn(ctx context.Context, stands *attempt, tries int) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying = false
	w := &waiter{ctx: ctx, got: make(chan grant, 1), in: l.waiting}
	w.at = l.waiting.PushFront(w)
	l.contendLocked(&sharedContender{stands: stands, tries: tries})
	return w
}

// stopTrying follows a try that was not granted.
func (l *Local) stopTrying() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying = false
	l.contendLocked(&sharedContender{fresh: true})
}

// nextLazyLocked reports whether the next place may be kept. It is called once for each place.
func (l *Local) nextLazyLocked() bool { return l.lazy > 0 && l.habit.next() }

// contendLocked starts a shared contender, unless nobody waits. The contender may have a turn
// that has just ended, or an attempt that stands.
func (l *Local) contendLocked(c *sharedContender) {
	first := l.waiting.Front()
	if first == nil {
		return
	}
	// Hooks get the values of the first waiter's context, even if that waiter withdraws.
	ctx, cancel := context.WithCancel(context.WithoutCancel(first.Value.(*waiter).ctx))
	c.waiting, c.cancel = l.waiting, cancel
	if old := c.stands; old != nil {
		c.lazy = old.entry.lazy
		depart := func() { old.s.Leaving(old.path) }
		c.depart.Store(&depart)
	} else {
		c.lazy = l.nextLazyLocked()
	}
	l.shared, l.waiting.by = c, c
	go l.contend(ctx, c)
}

// contend runs the shared contender until it is granted, fails, or is called back.
func (l *Local) contend(ctx context.Context, me *sharedContender) {
	defer me.cancel()
	defer me.placed.Tell()
	how := &entry{shown: &me.shown, lazy: me.lazy, in: !me.fresh, before: me.before}
	g := l.q.acquisition(ctx, l.request(), how).with(me.stands)
	g.result.Attempts = me.tries
	returned := false
	defer func() {
		if !returned { // a policy has ended this goroutine
			l.fail(me, g.result, errCut)
		}
	}()
	a, err := g.granted()
	returned = true
	if err != nil {
		l.fail(me, g.result, err)
		return
	}
	l.mu.Lock()
	if me.waiting.by != me { // called back
		l.mu.Unlock()
		a.quit(ctx, context.Canceled)
		return
	}
	l.endLocked(me)
	t := l.holdLocked(ctx, a)
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
	first.got <- grant{turn: t, result: g.result}
	t.passTo(others)
}

// holdLocked begins a turn with an attempt that was granted, and grants the first lease of it. The turn is
// the Local's, unless the Local has turned to another contender since.
func (l *Local) holdLocked(ctx context.Context, a *attempt) *turn {
	t := newTurn(ctx, a, l)
	t.tenure.leases = 1
	if l.idleLocked() {
		l.turn, l.left = t, l.most
	}
	return t
}

// admitLocked grants all waiters a lease of the turn. The caller tells them.
func (l *Local) admitLocked(t *turn, waiting *waiters) (admitted []*waiter) {
	for waiting.Len() > 0 && t.useLocked() {
		admitted = append(admitted, waiting.next())
	}
	return admitted
}

// passTo gives the turn to waiters that were granted a lease.
func (t *turn) passTo(admitted []*waiter) {
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
		if depart := by.depart.Load(); depart != nil {
			(*depart)() // so that the next acquisition of this session waits for the room of its node
		}
	}
	return true
}
