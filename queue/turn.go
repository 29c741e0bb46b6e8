package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Turn is a node that has come to the front, until it is left, its session ends or its node is deleted. [Queue.Begin]
// returns one. One [Lease] has it, or several do after each other, or at the same time if they are readers. The methods
// may be called by several goroutines at once. For makers of locks.
type Turn struct {
	_ misuse.NoCopy

	place
	config *Config // that has let the contender go; nil if the kind has none

	ctx  context.Context // the values of the acquisition's context, for hooks; never ends
	over ending

	known    ending // comes when token and tokenErr are set, which then never change
	token    int64
	tokenErr error
	revoked  ending // another client has asked for the lock
	last     ending // the turn must be neither kept nor handed over

	pace *rounds.Pace // of further watches on the node, one after the other; nil before the first

	mu     sync.Mutex
	delay  *time.Timer // of the first watch on the node; nil if that is set, or is being set
	leases []*Lease    // those that have not ended
	lost   int         // how many of them the loss of the turn has ended
}

// watchAfter is how long a turn that did not have to wait goes without a watch on its node, which costs a request: most
// locks are held for less. Until then the holder hears neither of a delete nor of a request to give the lock up.
const watchAfter = 5 * time.Millisecond

func newTurn(ctx context.Context, c *contender) *Turn {
	t := &Turn{place: c.place, ctx: c.q.valuesFor(ctx)}
	if c.kind.Configuration != nil {
		config := c.config // and not all of c
		t.config = &config
	}
	if c.beside != nil { // the place has one token, that of the first node
		t.setToken(c.beside.token, c.beside.tokenErr)
	}
	t.mu.Lock() // a loss waits until the table has the turn
	if c.own == nil {
		t.delay = time.AfterFunc(watchAfter, t.watchOwn)
	}
	turns.add(t)
	t.mu.Unlock()
	if c.own != nil {
		t.follow(c.own)
	}
	return t
}

func (t *Turn) made() *Turn {
	if t == nil || t.q == nil {
		panic("queue: Turn not made by Queue.Begin")
	}
	return t
}

// Session returns the session that owns the turn's node.
func (t *Turn) Session() *session.Session { return t.made().s }

// Path returns the path of the turn's node.
func (t *Turn) Path() string { return t.made().node.Path }

// Config returns the configuration that has let the turn's contender go, if its kind has a [Configuration].
func (t *Turn) Config() Config {
	if t.made().config == nil {
		return Config{}
	}
	return *t.config
}

// Entered returns a time before the listing that has granted the turn, if it did not have to wait.
func (t *Turn) Entered() time.Time { return t.made().entered }

// Err returns nil while the turn lasts, and then why it is over. It looks at the clock at the time of the call.
func (t *Turn) Err() error {
	if t.made().over.why() == nil {
		if err := t.s.Err(); err != nil {
			t.lose(err)
		}
	}
	return t.over.why()
}

// Done returns a channel that is closed when the turn is over.
func (t *Turn) Done() <-chan struct{} { return t.made().over.wait() }

// AfterEnd calls f in a goroutine of its own when the turn is over. stop cancels that.
func (t *Turn) AfterEnd(f func()) (stop func()) { return t.made().over.after(func() { go f() }) }

// Last returns a channel that is closed when the turn must be neither kept nor handed over: another client has, or may
// have, asked for the lock, or the holder becomes a reader.
func (t *Turn) Last() <-chan struct{} { return t.made().last.wait() }

// IsLast reports whether Last is closed.
func (t *Turn) IsLast() bool { return t.made().last.why() != nil }

// Undisturbed returns a channel that is closed when another contender may have come that waits for the turn's node, or
// nil if one may have come already. It costs no request: with MayKeep, the listing that grants the turn watches the
// children. A server that takes the right to read the directory away drops the event without a word, so the channel
// counts for a session timeout after [Turn.Entered], and no longer: the caller sees to that.
func (t *Turn) Undisturbed() <-chan struct{} {
	if t.made().children == nil || t.children.Event() != session.WatchPending {
		return nil
	}
	return t.children.Done()
}

// maxCrowd is how many children there may be for LookAround. Each that comes or leaves makes all who look list again.
const maxCrowd = 16

// LookAround lists the directory, and returns a new channel as that of [Turn.Undisturbed], which counts for a session
// timeout after the call. It returns nil if somebody waits for the turn's node, if there are more than 16 children, or
// if the listing fails, as it does when the turn is over.
func (t *Turn) LookAround() <-chan struct{} {
	t.made()
	ctx, cancel := t.during()
	defer cancel()
	l, err := t.s.List(ctx, t.q.dir, session.ListOptions{Children: true})
	me, _ := ParseNode(path.Base(t.node.Path), t.kind.Prefixes...)
	if err != nil || len(l.Names) > maxCrowd || !slices.Contains(l.Names, me.Name) {
		return nil
	}
	p, err := t.kind.policy(me, t.Config())
	if v := Decide(t.kind, p, me, l.Names); err != nil || v.Crowded || v.Stranger != nil {
		return nil
	}
	return l.Children.Done()
}

// Leave ends the turn, and has its node removed. It returns nil if the turn was over. It waits for nothing. It calls
// hooks, with ctx: the caller holds no mutex that they may need.
func (t *Turn) Leave(ctx context.Context) *session.Removal {
	t.made()
	misuse.Context(ctx, "queue: Turn.Leave")
	if !t.over.end(ErrReleased) {
		return nil
	}
	t.stopDelay()
	turns.remove(t)
	return t.remove(ctx)
}

// lose ends the turn by a loss, and its leases by what has ended the turn. It returns how many holds were lost.
func (t *Turn) lose(cause error) (lost int) {
	t.mu.Lock()
	if t.over.why() == nil {
		t.lost = len(t.leases)
	}
	lost = t.lost
	t.mu.Unlock()
	deleted := errors.Is(cause, errDeleted)
	if deleted && t.over.why() == nil {
		// The session counts the node until a delete of ours has found that it is gone.
		t.remove(t.ctx)
	}
	over := &OpError{Op: "lock", Path: t.q.dir, Err: cause}
	if errors.Is(cause, session.ErrLost) {
		over.since = time.Now()
	}
	if t.over.end(over) && deleted {
		turns.remove(t)
		if lost > 0 {
			t.q.m.Logger().Warn("lock lost: its node was deleted, and not by its holder",
				"lock", t.q.dir, "node", t.node.Path, "session", hexID(t.s))
		}
	}
	t.mu.Lock()
	all := slices.Clone(t.leases) // also in a later call: a lease can have begun since the first
	t.mu.Unlock()
	for _, l := range all {
		l.finish(t.over.why())
	}
	return lost
}

// loseNode ends the turn because its node was deleted, and returns why it is over: after a release, that.
func (t *Turn) loseNode() error {
	t.lose(fmt.Errorf("%w: %w", session.ErrLost, errDeleted))
	return t.over.why()
}

// Holder describes the contender that has the turn, as far as this process knows it.
func (t *Turn) Holder() Contender {
	t.made()
	c := Contender{Path: t.node.Path, Sequence: t.sequence, Session: t.s.ID(), Holder: true, Own: true}
	c.HeldSince, c.Kept = turns.lookUp(t.s, t.node.Path)
	return c
}

// Beside takes another turn next to t, with the same session, sequence number and token, for the holder of t's lease
// held: a writer that becomes a reader, with no other writer in between. r is that of the reader. The policy of t's
// kind says, by Replaces, that the node may leave another in its place.
//
// From the call on, t is neither kept nor handed over. Beside returns when a listing has shown both nodes: then the new
// turn does not depend on t any more. It fails as [Queue.Begin] does, and with the reason why held has ended.
func (t *Turn) Beside(ctx context.Context, held *Lease, r Request) (*Turn, Effort, error) {
	t.made()
	misuse.Context(ctx, "queue: Turn.Beside")
	t.last.end(errTold) // before the look at held
	// The token is that of the first node: the second is younger than the waiters behind the place.
	_, _ = t.awaitToken(ctx, &held.over)
	if err := held.Err(); err != nil {
		return nil, Effort{Position: -1}, err
	}
	c := t.q.newContender(t.s, &r)
	c.beside = t
	beside, err := c.contend(ctx, Waits)
	return beside, Effort{Attempts: 1, Position: c.position}, err
}

// WatchNow sets the first watch on the node, which is set 5 ms after the grant otherwise.
func (t *Turn) WatchNow() {
	if t.made().stopDelay() {
		go t.watchOwn()
	}
}

// stopDelay forgets the timer of the first watch, and reports whether it has kept it from being set.
func (t *Turn) stopDelay() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	delay := t.delay
	t.delay = nil
	return delay != nil && delay.Stop()
}

// watchOwn sets a watch on the node, until one is set, the turn is over, or the servers refuse. It runs once at a time.
func (t *Turn) watchOwn() {
	t.stopDelay()
	ctx, cancel := t.during()
	defer cancel()
	if t.pace != nil && t.pace.Wait(ctx, nil) != nil {
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

// during returns a context that ends with the turn.
func (t *Turn) during() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	stop := t.over.after(func() { cancel(t.over.why()) })
	return ctx, func() { stop(); cancel(nil) }
}

// follow takes what a watch has told when it was set, and says what happens when it ends.
func (t *Turn) follow(own *session.Watch) {
	if data, stat := own.Data(); stat != nil {
		t.setToken(stat.Czxid, nil)
		if string(data) == RevokeMessage {
			t.last.end(errTold)
			t.revoked.end(failed("lock", t.q.dir, ErrRevoked))
		}
	}
	set := time.Now()
	own.AfterEvent(func() {
		switch {
		case t.over.why() != nil:
		case own.Event() == session.WatchDeleted:
			t.loseNode()
		default:
			t.last.end(errTold) // another client may have asked for the lock
			if t.pace == nil {
				t.pace = rounds.NewPace(t.q.m.Backoff())
			}
			t.pace.Rested(time.Since(set))
			t.watchOwn()
		}
	})
}

// setToken sets the token, or the refusal to tell it, once.
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
