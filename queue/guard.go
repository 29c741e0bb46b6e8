package queue

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// A turn is guarded by what happens, and not by a goroutine that waits for it: by the end of
// its session, and by the watch on its node, which somebody may delete.

// watchAfter is for how long a turn that was granted at once has no watch on its node, unless
// the token is asked for, or the turn passed on, or the holder is to hear that he is asked to
// leave. The watch costs a request, and most locks are held for less; until then nobody notices
// that the node was deleted behind the holder's back.
const watchAfter = 5 * time.Millisecond

// guard begins to watch over the turn, until it ends.
func (t *turn) guard() {
	t.untilEnd(&t.leaveSession, func() (stop func()) {
		return plumbing.Of(t.a.s).AfterEnd(func() { t.lose(t.a.s.Err()) })
	})
	own := t.a.own
	if own == nil {
		t.untilEnd(&t.leaveNode, func() (stop func()) {
			delay := time.AfterFunc(watchAfter, t.watchOwn)
			t.delay = delay
			return func() { delay.Stop() }
		})
		if t.a.r.Revoked != nil {
			t.hurry()
		}
		return
	}
	t.learn(own, t.a.czxid, nil)
	data, _, _ := own.Result()
	t.heed(data)
	t.heedEvent(own)
}

// untilEnd starts something, unless the turn has ended, and notes how it is stopped when that
// ends. What is started may come to its end, and start the next, as soon as t.mu is free.
func (t *turn) untilEnd(at *func(), start func() (stop func())) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.Err() == nil {
		*at = start()
	}
}

// conclude ends the turn, and with it the guard.
func (t *turn) conclude(cause error) {
	t.end(cause)
	t.mu.Lock()
	stops := [...]func(){t.leaveSession, t.leaveNode}
	t.leaveSession, t.leaveNode = nil, nil
	t.mu.Unlock()
	for _, stop := range stops {
		if stop != nil {
			stop()
		}
	}
}

// hurry has the watch on the node set now, if it is still to be.
func (t *turn) hurry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.delay != nil && t.delay.Stop() {
		go t.watchOwn()
	}
}

// watchOwn sets the watch on our node, for the first time or again. From guard on there is one
// call at a time. If a hook, or the user's backoff, ends the goroutine, another goes on: without
// the watch nobody would notice that the node was deleted, and who asks for the token would wait.
func (t *turn) watchOwn() { t.persist(t.setOwn) }

func (t *turn) persist(f func()) {
	ended := false
	defer func() {
		if !ended {
			time.AfterFunc(watchAfter, t.watchOwn)
		}
	}()
	f()
	ended = true
}

// setOwn gives up when the turn has ended or the server refuses.
func (t *turn) setOwn() {
	for t.life.Err() == nil {
		data, stat, w, err := plumbing.Of(t.a.s).Watch(t.life, t.info.Node)
		switch {
		case err == nil && stat.EphemeralOwner != t.a.s.ID():
			t.loseNode() // another's now stands where ours did: of an unfair lock
			return
		case err == nil:
			t.learn(w, stat.Czxid, nil)
			t.heed(data)
			t.heedEvent(w)
			return
		case t.life.Err() != nil:
			return
		case errors.Is(err, zk.ErrNoNode):
			t.loseNode()
			return
		case t.a.s.Err() != nil:
			t.lose(t.a.s.Err())
			return
		case !plumbing.Uncertain(err):
			t.learn(nil, 0, err)
			return
		}
		// A lost reply, and WithRetry says stop. That ends requests, not leases.
		_ = t.pace.Wait(t.life, nil)
	}
}

// heedEvent has the end of the watch on our node acted upon.
func (t *turn) heedEvent(own plumbing.Watch) {
	t.untilEnd(&t.leaveNode, func() (stop func()) {
		return own.AfterEvent(func() {
			if own.Event() == plumbing.WatchDeleted {
				t.loseNode()
			} else {
				t.persist(func() {
					if t.pace.Wait(t.life, nil) == nil {
						t.setOwn()
					}
				})
			}
		})
	})
}

// learn notes the watch, and the token or why there is none; that the first time only. It is
// called by guard and watchOwn alone.
func (t *turn) learn(own plumbing.Watch, czxid int64, err error) {
	if own == nil && err == nil {
		return
	}
	t.mu.Lock()
	t.own = own
	t.mu.Unlock()
	select {
	case <-t.known:
	default:
		t.czxid, t.tokenErr = czxid, err
		close(t.known)
	}
}

// RevokeMessage is the data that asks a holder to give up its lease: Curator's.
const RevokeMessage = "__REVOKE__"

// heed calls Revoked if the data of our node says so and it has not been called before. Then
// nobody else of this process gets the lock in this turn. It is called by guard and watchOwn
// alone.
func (t *turn) heed(data []byte) {
	if t.a.r.Revoked == nil || string(data) != RevokeMessage || t.life.Err() != nil {
		return
	}
	if t.local != nil {
		t.local.last(t)
	}
	t.mu.Lock()
	again, holder := t.asked, t.holder
	t.asked = true
	t.mu.Unlock()
	if !again && holder != nil { // the first hold is told as it begins
		go t.a.r.Revoked(holder)
	}
}
