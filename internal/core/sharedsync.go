package core

import (
	"context"
	"sync"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// syncs lets callers share a sync. When a connection is lost, the replies to many requests can be lost with
// it. All of their callers have to sync before they look for what became of them. One sync that was sent
// after the loss is enough for all of them, as long as its connection lasts.
type syncs struct {
	mu   sync.Mutex
	sent int64       // how many there were
	next *sharedSync // not sent yet; nil if nobody waits for one
	last *sharedSync // the latest that was sent; nil before the first
}

type sharedSync struct {
	done   chan struct{} // closed when the caller that sends the sync has returned
	number int64         // which one it is, counted from 1; set when it is sent
	ok     bool          // it was answered; set before done is closed
	over   *wire.Conn    // the connection over which it was answered; set before done is closed
}

// mark returns a number for now. Syncs that are sent later have higher numbers.
func (t *syncs) mark() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent
}

// SharedSync returns when the server that the session is connected to has caught up with the leader
// by a sync that was sent after a moment, which Creation.Syncs has returned. Callers share such a
// sync: one is enough for all whose replies were lost with a connection. SharedSync fails as
// Session.Sync does.
func (s *Session) SharedSync(ctx context.Context, path string, after int64) error {
	info := hooks.RequestInfo{Op: "sync", Path: path}
	if err := misuse.ValidatePath(path); err != nil {
		return err
	}
	for {
		one, first := s.syncs.join(after, s.present())
		if first {
			return s.leadSync(ctx, info, one)
		}
		select {
		case <-one.done:
			if one.ok {
				return nil
			}
			// The caller that should have sent it has given up. Others try in its place.
		case <-ctx.Done():
			return opError(info, ctx.Err())
		case <-s.life.Done():
			return opError(info, s.Err())
		}
	}
}

// newSync is sharedSync for a caller that needs a sync which is sent from now on.
func (s *Session) newSync(ctx context.Context, path string) error {
	return s.SharedSync(ctx, path, s.syncs.mark())
}

// leadSync sends a sync, for its caller and those that share it.
func (s *Session) leadSync(ctx context.Context, info hooks.RequestInfo, one *sharedSync) error {
	defer close(one.done)
	defer s.syncs.leave(one) // if it was not sent
	type answer struct{ over *wire.Conn }
	got, err := do(ctx, s, info, always, func(done func(answer, error)) {
		s.syncs.send(one)
		over := s.present()
		s.sync(ctx, s.outward(info.Path))(func(_ struct{}, err error) {
			if over != s.present() {
				over = nil
			}
			done(answer{over}, err)
		})
	})
	one.over = got.over
	one.ok = err == nil
	return err
}

// join returns the sync to share, and whether the caller has to send it. It must be sent after the mark.
// One that was answered counts only as long as its connection is the present one.
func (t *syncs) join(after int64, present *wire.Conn) (one *sharedSync, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && t.last.number > after && t.last.serves(present) {
		return t.last, false
	}
	if first = t.next == nil; first {
		t.next = &sharedSync{done: make(chan struct{})}
	}
	return t.next, first
}

// serves reports whether a sync that was sent is under way, or was answered over this connection.
func (one *sharedSync) serves(present *wire.Conn) bool {
	select {
	case <-one.done:
		return one.ok && one.over != nil && one.over == present
	default:
		return true
	}
}

// send is called when a sync is about to be sent, for the first time or again.
func (t *syncs) send(one *sharedSync) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == one {
		t.next = nil
		t.sent++
		one.number, t.last = t.sent, one
	}
}

// leave keeps further callers from joining a sync that will not be sent.
func (t *syncs) leave(one *sharedSync) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == one {
		t.next = nil
	}
}
