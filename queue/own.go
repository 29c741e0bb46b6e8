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

// guard watches the node, until the turn is over. own is the watch that the contender has set; nil: it did not have to wait.
func (t *Turn) guard(own *session.Watch) {
	if own != nil {
		t.follow(own)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.why() == nil {
		t.delay = time.AfterFunc(watchAfter, t.setOwn)
	}
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

// setOwn sets a watch on the node, until one is set, the turn is over, or the servers refuse. It runs once at a time.
func (t *Turn) setOwn() {
	t.mu.Lock()
	t.delay = nil
	t.mu.Unlock()
	ctx, cancel := t.during()
	defer cancel()
	_, _, own, err := t.s.Watch(ctx, t.node.Path)
	switch {
	case err == nil:
		t.follow(own)
	case t.over.why() != nil:
	case isNoNode(err):
		t.loseNode()
	case t.s.Err() != nil:
		t.lose(t.s.Err())
	default:
		t.setToken(0, err)
	}
}

// during returns a context for what the turn waits for. It ends with the turn, with its cause.
func (t *Turn) during() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	stop := t.over.after(func() { cancel(t.over.why()) })
	return ctx, func() { stop(); cancel(nil) }
}

// follow takes note of what a watch has told when it was set, and says what happens when it ends.
func (t *Turn) follow(own *session.Watch) {
	if data, stat := own.Data(); stat != nil {
		t.setToken(stat.Czxid, nil)
		if string(data) == RevokeMessage { // the holders learn of it, and nobody else gets the turn after them
			t.last.end(errTold)
			t.revoked.end(failed("lock", t.q.dir, ErrRevoked))
		}
	}
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
		t.last.end(errTold) // another client may have asked for the lock: nobody else gets it before that is known
		if t.changes == nil {
			t.changes = rounds.NewPace(t.q.m.Backoff())
		}
		t.changes.Rested(time.Since(set))
		ctx, cancel := t.during()
		defer cancel()
		if t.changes.Wait(ctx, nil) == nil {
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
	if t.known.why() == nil { // it does not change any more
		t.token, t.tokenErr = czxid, err
		t.known.end(errTold)
	}
}

// awaitToken returns the token when the servers have told it. It fails when ctx or end ends.
func (t *Turn) awaitToken(ctx context.Context, end *ending) (int64, error) {
	if t.known.why() == nil {
		if ctx.Err() == nil && end.why() == nil {
			t.WatchNow()
		}
		select {
		case <-t.known.wait():
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-end.wait():
			return 0, end.why()
		}
	}
	return t.token, t.tokenErr
}
