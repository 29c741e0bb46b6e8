package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// watchAfter is how long a turn that did not have to wait goes without a watch on its node, which costs a request: most
// locks are held for less. Until the watch is set, the holder does not notice that the node was deleted, and does not hear
// that another client asks for the lock. It is set earlier when the token is asked for, and when the lock is handed over.
const watchAfter = 5 * time.Millisecond

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
	if t.changes != nil && t.changes.Wait(ctx, nil) != nil {
		return
	}
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
		t.setOwn()
	})
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

// turns has the turns of this process while they last. The end of their session ends them, and the log gets one line for
// all locks that it takes away. Contenders asks it since when a node of ours is held.
var turns = turnTable{sessions: make(map[*session.Session]*sessionTurns)}

type turnTable struct {
	mu       sync.Mutex
	sessions map[*session.Session]*sessionTurns
}

// sessionTurns has the turns of one session. It is kept from the first of them until the last is over, or for as long as
// the session if that ends first.
type sessionTurns struct {
	turns map[string]*Turn // by the path of the node
	stop  func() bool      // cancels what follows the end of the session
	ended bool             // the session has ended
	lost  int              // holds that ended with the session
	some  []string         // paths of the first locks that were lost
}

// namedLosses is how many of the locks that are lost together the log names.
const namedLosses = 5

// add notes that a turn has begun. The end of its session ends it, also if that has come. The turn calls remove when it is
// over.
func (h *turnTable) add(t *Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.sessions[t.s]
	if in == nil {
		in = &sessionTurns{turns: make(map[string]*Turn)}
		in.stop = t.s.AfterEnd(func() { h.end(t.s) })
		h.sessions[t.s] = in
	}
	in.turns[t.node.Path] = t
	if in.ended {
		go t.lose(t.s.Err())
	}
}

// remove notes that a turn is over, and how many of its holds the end of the session took away. The last turn tells the log.
func (h *turnTable) remove(t *Turn, lost int) {
	h.mu.Lock()
	in := h.sessions[t.s]
	delete(in.turns, t.node.Path)
	if in.lost += lost; lost > 0 && len(in.some) < namedLosses {
		in.some = append(in.some, t.q.dir)
	}
	last := len(in.turns) == 0
	if last {
		delete(h.sessions, t.s)
		in.stop()
	}
	h.mu.Unlock()
	// A program that closes the manager gives its locks up itself, which is no loss.
	if cause := t.s.Err(); last && in.lost > 0 && !errors.Is(cause, session.ErrClosed) {
		t.q.m.Logger().Warn("locks lost with their session",
			"holds", in.lost, "locks", in.some, "session", hexID(t.s), "cause", cause)
	}
}

// end ends the turns of a session that has ended.
func (h *turnTable) end(s *session.Session) {
	var all []*Turn
	h.mu.Lock()
	if in := h.sessions[s]; in != nil {
		in.ended = true
		all = slices.Collect(maps.Values(in.turns))
	}
	h.mu.Unlock()
	for _, t := range all {
		t.lose(s.Err())
	}
}

// lookUp returns when the present hold of a node has begun, and whether its place is kept without a hold. It returns zero
// values if this session has no turn by that node.
func (h *turnTable) lookUp(s *session.Session, node string) (since time.Time, kept bool) {
	h.mu.Lock()
	in := h.sessions[s]
	if in == nil || in.turns[node] == nil {
		h.mu.Unlock()
		return time.Time{}, false
	}
	t := in.turns[node]
	h.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leases != nil {
		return t.leases.since, false
	}
	return time.Time{}, t.me.MayKeep && t.over.why() == nil
}

func hexID(s *session.Session) string { return fmt.Sprintf("0x%x", uint64(s.ID())) }

// ending is the end of a turn or of a lease, or something else that comes once, with a cause. It has a channel only while
// somebody asked for it, since most locks are held and released without one. The zero value has not come. All methods may
// be called by several goroutines at once.
type ending struct {
	mu    sync.Mutex
	cause error         // nil until it comes
	done  chan struct{} // nil until somebody asks
	calls *endCall      // to be made when it comes: a list
}

// errTold is the cause of an ending that needs none.
var errTold = errors.New("told")

type endCall struct {
	f    func()
	next *endCall
}

// end has it come with a cause. It reports whether this was the first call; others do nothing.
func (e *ending) end(cause error) bool {
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		return false
	}
	e.cause = cause
	if e.done != nil {
		close(e.done)
	}
	calls := e.calls
	e.calls = nil
	e.mu.Unlock()
	for ; calls != nil; calls = calls.next {
		calls.f()
	}
	return true
}

// why returns the cause, or nil if it has not come.
func (e *ending) why() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// wait returns a channel that is closed when it comes.
func (e *ending) wait() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		if e.done = make(chan struct{}); e.cause != nil {
			close(e.done)
		}
	}
	return e.done
}

// after has f called when it comes, at once if it has come. f must not block. stop has f forgotten.
func (e *ending) after(f func()) (stop func()) {
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		f()
		return func() {}
	}
	defer e.mu.Unlock()
	call := &endCall{f, e.calls}
	e.calls = call
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for at := &e.calls; *at != nil; at = &(*at).next {
			if *at == call {
				*at = call.next
				return
			}
		}
	}
}
