package queue

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// watchAfter is how long a turn that did not have to wait goes without a watch on its node, which costs a request: most
// locks are held for less. Until the watch is set, the holder does not notice that the node was deleted, and does not hear
// that another client asks for the lock. It is set earlier when the token is asked for, and when the lock is handed over.
const watchAfter = 5 * time.Millisecond

// guard watches the node, until the turn is over.
func (t *Turn) guard() {
	if t.own == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.over.why() == nil {
			t.delay = time.AfterFunc(watchAfter, t.setOwn)
		}
		return
	}
	data, stat := t.own.Data()
	if stat != nil {
		t.setToken(stat.Czxid, nil)
	}
	t.noticeRevoke(data)
	t.follow(t.own)
}

// WatchNow sets the first watch on the node, which is set a few milliseconds after the grant otherwise.
func (t *Turn) WatchNow() {
	t.made()
	t.mu.Lock()
	delay := t.delay
	t.delay = nil
	t.mu.Unlock()
	if delay != nil && delay.Stop() {
		go t.setOwn()
	}
}

// setOwn sets a watch on the node, until one is set, the turn is over, or the servers refuse.
func (t *Turn) setOwn() {
	t.mu.Lock()
	t.delay = nil
	t.mu.Unlock()
	ctx, cancel := t.during()
	defer cancel()
	for t.over.why() == nil {
		data, stat, own, err := t.s.Watch(ctx, t.node.Path)
		switch {
		case err == nil:
			t.setToken(stat.Czxid, nil)
			t.noticeRevoke(data)
			t.follow(own)
			return
		case t.over.why() != nil:
			return
		case isNoNode(err):
			t.loseNode()
			return
		case t.s.Err() != nil:
			t.lose(t.s.Err())
			return
		case !isCut(err):
			t.setToken(0, err)
			return
		}
		_ = t.pace().Wait(ctx, nil) // the user's backoff has stopped the request's retries; that must not end the guard
	}
}

// pace returns the pace of setOwn, which runs once at a time. Most turns need none.
func (t *Turn) pace() *rounds.Pace {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watches == nil {
		t.watches = t.q.newPace()
	}
	return t.watches
}

// during returns a context for what the turn waits for. It ends with the turn, with its cause.
func (t *Turn) during() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	stop := t.over.after(func() { cancel(t.over.why()) })
	return ctx, func() { stop(); cancel(nil) }
}

// follow says what happens when the watch ends.
func (t *Turn) follow(own *session.Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.why() != nil {
		return
	}
	set := time.Now()
	t.stop = own.AfterEvent(func() {
		if own.Event() == session.WatchDeleted {
			t.loseNode()
			return
		}
		t.last.Tell() // another client may have asked for the lock: nobody else gets it before that is known
		t.pace().Rested(time.Since(set))
		ctx, cancel := t.during()
		defer cancel()
		if t.pace().Wait(ctx, nil) == nil {
			t.setOwn()
		}
	})
}

// unguard ends guard, once the turn is over.
func (t *Turn) unguard() {
	t.mu.Lock()
	stop, delay := t.stop, t.delay
	t.stop, t.delay = nil, nil
	t.mu.Unlock()
	if stop != nil {
		stop()
	}
	if delay != nil {
		delay.Stop()
	}
}

// setToken takes note of the token, or of the refusal to tell it, once.
func (t *Turn) setToken(czxid int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known.Has() { // it does not change any more
		t.token, t.tokenErr = czxid, err
		t.known.Tell()
	}
}

// noticeRevoke tells the holders if the node's data asks for the lock. It is neither handed over nor kept after that.
func (t *Turn) noticeRevoke(data []byte) {
	if string(data) == RevokeMessage {
		t.last.Tell()
		t.revoked.end(failed("lock", t.q.dir, ErrRevoked))
	}
}

// awaitToken returns the token when the servers have told it. It fails when ctx or end ends.
func (t *Turn) awaitToken(ctx context.Context, end *ending) (int64, error) {
	if !t.known.Has() {
		if ctx.Err() == nil && end.why() == nil {
			t.WatchNow()
		}
		select {
		case <-t.known.Wait():
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-end.wait():
			return 0, end.why()
		}
	}
	return t.token, t.tokenErr
}
