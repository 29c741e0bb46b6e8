package place

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/kinds"
)

// A turn ends when its session ends or its node is deleted. No goroutine waits for that: the
// session and the watch on the node call back.

// watchAfter is how long an uncontended turn goes without a watch on its node, which costs a request: most locks are
// held for less. Until the watch is set, the holder does not notice that the node was deleted. It is set earlier when
// the token is asked for, and when the lock is handed over. Nor does the holder hear before that that another client
// asks for the lock.
const watchAfter = 5 * time.Millisecond

// Guard starts to guard the turn, until it ends.
func (t *Turn) Guard() {
	t.guardSession()
	data, stat := known(t.own)
	if stat == nil {
		t.delayWatch()
		return
	}
	t.learn(t.own, stat.Czxid)
	t.noticeRevoke(data)
	t.guardNode(t.own)
}

// guardSession has the end of the session end the turn. It is in held from now on, unless it is over.
func (t *Turn) guardSession() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		held.add(t)
	}
}

// The next three functions hold t.mu while they start a callback, so that the callback, which can
// run at once, finds the function that stops it. None starts one after conclude.

// GuardChildren tells the sharer when the watch on the children ends: another contender may have come. w is
// nil if there is no watch.
func (t *Turn) GuardChildren(w *core.Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w != nil && t.cause == nil {
		t.stopChildren = w.AtEvent(func() {
			t.s.InTurn(func() { t.by.Intrude(w) })
		})
	}
}

// delayWatch sets the first watch on the node after watchAfter.
func (t *Turn) delayWatch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		delay := time.AfterFunc(watchAfter, t.watchOwn)
		t.delay = delay
		t.stopNode = func() { delay.Stop() }
	}
}

// guardNode ends the turn when the watch says that the node was deleted. When the watch ends
// otherwise, it sets a new one.
func (t *Turn) guardNode(own *core.Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return
	}
	set := time.Now()
	t.delay = nil
	after := func() {
		t.rounds().Rested(time.Since(set))
		if own.Event() == core.WatchDeleted {
			t.loseNode()
			return
		}
		ctx := t.during(&t.stopNode)
		if t.rounds().Wait(ctx, nil) == nil {
			t.setOwn(ctx)
		}
	}
	ended := func() {
		switch event := own.Event(); {
		case t.by == nil:
		case event == core.WatchBroken:
			// The end of a connection ends kept places, so there is no watch to be set again. There may be thousands.
			t.by.GiveUpKept(false)
		case event == core.WatchChanged:
			t.by.MakeLast() // another client may have asked for the lock: nobody gets it before that is known
		}
		if t.ended() == nil {
			go after()
		}
	}
	t.stopNode = own.AtEvent(func() { t.s.InTurn(ended) })
}

// WatchNow does at once what delayWatch does after watchAfter: it sets the first watch on the node.
func (t *Turn) WatchNow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil && t.delay != nil && t.delay.Stop() {
		go t.watchOwn()
	}
}

// watchOwn sets a watch on the node, until one is set, the turn has ended or the server refuses.
// The guard makes one call at a time.
func (t *Turn) watchOwn() { t.setOwn(t.during(&t.stopNode)) }

// during returns a context for requests that the turn waits for. Only the end of the turn ends it, and
// finds in stop how. A turn has no such context of its own: a context that somebody has waited for keeps
// its channel until it is freed.
func (t *Turn) during(stop *func()) context.Context {
	ctx, cancel := context.WithCancelCause(t.ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		cancel(t.cause)
	} else {
		*stop = func() { cancel(t.ended()) }
	}
	return ctx
}

func (t *Turn) setOwn(ctx context.Context) {
	for t.ended() == nil {
		data, stat, w, err := t.s.Watch(ctx, t.path)
		switch {
		case err == nil:
			t.learn(w, stat.Czxid)
			t.noticeRevoke(data)
			t.guardNode(w)
			return
		case t.ended() != nil:
			return
		case errors.Is(err, zk.ErrNoNode):
			t.loseNode()
			return
		case t.s.Err() != nil:
			t.lose(t.s.Err())
			return
		case !core.Uncertain(err):
			t.learnRefusal(err)
			return
		}
		// The reply was lost, and the user's backoff has stopped the request's retries. That
		// must not end the guard.
		_ = t.rounds().Wait(ctx, nil)
	}
}

// rounds returns the pace of watchOwn.
func (t *Turn) rounds() *rounds.Pace {
	if t.pace == nil {
		t.pace = t.q.newPace()
	}
	return t.pace
}

// learn takes note of a watch on the node. The first one tells the token. Only Guard and
// watchOwn call it.
func (t *Turn) learn(own *core.Watch, czxid int64) {
	t.mu.Lock()
	t.own = own
	t.mu.Unlock()
	t.setToken(czxid, nil)
}

// learnRefusal takes note that the server refuses to tell about the node. Only watchOwn calls it.
func (t *Turn) learnRefusal(err error) {
	t.mu.Lock()
	t.own = nil
	t.mu.Unlock()
	t.setToken(0, err)
}

func (t *Turn) setToken(czxid int64, err error) {
	if !t.known.Has() { // it does not change any more
		t.token, t.tokenErr = czxid, err
		t.known.Tell()
	}
}

// noticeRevoke tells the present holds if the node's data asks the holder to give the lock up. The
// lock is not handed over after that, nor its place kept. Only Guard and watchOwn call it.
func (t *Turn) noticeRevoke(data []byte) {
	if string(data) != kinds.RevokeMessage || t.ended() != nil {
		return
	}
	if t.by != nil {
		t.by.MakeLast()
	}
	t.mu.Lock()
	holders := slices.Clone(t.holders)
	t.asked = true
	t.mu.Unlock()
	for _, l := range holders { // Begin tells those that have not begun
		l.revocation.Tell()
	}
}

// Token returns the fencing token: the id of the transaction that created the node (czxid). It waits for the
// server if the token is not known yet.
func (l *Lease) Token(ctx context.Context) (int64, error) {
	if l.t.known.Has() {
		return l.t.token, l.t.tokenErr
	}
	ctx, end := maxwait.Begin(ctx)
	defer func() { _ = end(nil) }()
	if ctx.Err() == nil && l.hold.Err() == nil {
		l.t.WatchNow()
	}
	select {
	case <-l.t.known.Wait():
		return l.t.token, l.t.tokenErr
	case <-ctx.Done():
		return 0, Failed("token of", l.t.q.dir, end(ctx.Err()))
	case <-l.hold.Done():
		return 0, Failed("token of", l.t.q.dir, l.Err())
	}
}

// Begin begins a hold. ctx is that of the caller that gets the lease. The previous hold has ended.
func (t *Turn) Begin(ctx context.Context) *Lease {
	l := newLease(ctx, t)
	// The hook gets the lease, which can end before the hook returns. Then a sharer hands the turn
	// over, and the next hold begins. So the turn has to know of this hold before the hook.
	t.mu.Lock()
	t.holders = append(t.holders, l)
	asked := t.asked
	t.mu.Unlock()
	if asked {
		l.revocation.Tell()
	}
	l.began()
	if cause := t.ended(); cause != nil {
		t.lose(cause) // again: the first call has not found this holder
	}
	return l
}
