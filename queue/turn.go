package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Turn is a node that has come to the front, until it is left, its session ends or its node is deleted. One [Lease] has it,
// or several do after each other, or at the same time if they are readers: their makers see to that. A Turn is for makers
// of locks; [Queue.Begin] returns one. The methods may be called by several goroutines at once. No goroutine waits for the
// end of a turn: the session and the watch on the node call back.
type Turn struct {
	_ misuse.NoCopy

	place
	ctx  context.Context // the values of the acquisition's context, for hooks; never ends
	over ending

	known    ending // comes when token and tokenErr are set, which then never change
	token    int64
	tokenErr error
	revoked  ending // another client has asked for the lock
	last     ending // the turn must be neither kept nor handed over

	mu      sync.Mutex
	leases  *Lease       // those that have not ended: a list
	stop    func() bool  // what guards the node; nil for nothing
	delay   *time.Timer  // of the first watch on the node; nil if that is set, or is being set
	changes *rounds.Pace // of further watches on the node, one after the other; nil before the first
}

// newTurn begins the turn of a contender that was granted.
func newTurn(ctx context.Context, c *contender) *Turn {
	t := &Turn{place: c.place, ctx: c.q.valuesFor(ctx)}
	if t.nearEnd() || !t.me.MayKeep {
		t.children = nil // the directory has to become empty
	}
	if c.beside != nil { // the place has one token, that of the first node
		t.setToken(c.beside.token, c.beside.tokenErr)
	}
	turns.add(t)
	if c.own != nil { // the contender has waited
		t.follow(c.own)
		return t
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.why() == nil {
		t.delay = time.AfterFunc(watchAfter, t.setOwn)
	}
	return t
}

// made returns t. It panics if t is nil or a zero value.
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

// Config returns the configuration that has let the turn's contender go, if its kind has a [Configuration]: the directory
// had it when the contender looked at its watches last.
func (t *Turn) Config() Config { return t.made().config }

// Entered returns a time before the listing that has granted the turn, if it did not have to wait.
func (t *Turn) Entered() time.Time { return t.made().entered }

// Err returns nil while the turn lasts, and then why it is over. It looks at the clock at the time of the call.
func (t *Turn) Err() error {
	t.made()
	if cause := t.over.why(); cause != nil {
		return cause
	}
	if err := t.s.Err(); err != nil {
		t.lose(err)
	}
	return t.over.why()
}

// Done returns a channel that is closed when the turn is over.
func (t *Turn) Done() <-chan struct{} { return t.made().over.wait() }

// AfterEnd calls f in a goroutine of its own when the turn is over. stop cancels that.
func (t *Turn) AfterEnd(f func()) (stop func()) { return t.made().over.after(func() { go f() }) }

// Last returns a channel that is closed when the turn must be neither kept nor handed over: another client has asked for
// the lock, the node has changed in a way that is not known yet, or the holder has become a reader.
func (t *Turn) Last() <-chan struct{} { return t.made().last.wait() }

// IsLast reports whether Last is closed.
func (t *Turn) IsLast() bool { return t.made().last.why() != nil }

// Undisturbed returns a channel that is closed when another contender may have come that waits for the turn's node. It
// returns nil if one may have come already, or if that is not known. What the channel says costs no request: the listing that has
// granted the turn has set a watch on the children, and has shown nobody behind. A request with MayKeep asks for that.
//
// A server that takes the right to read the directory away drops the event without a word. So the channel counts for a
// session timeout after [Turn.Entered], and no longer: the caller sees to that.
func (t *Turn) Undisturbed() <-chan struct{} {
	if t.made().children == nil || t.children.Event() != session.WatchPending {
		return nil
	}
	return t.children.Done()
}

// maxCrowd is how many children there may be for LookAround. Each one that comes or leaves makes each of those that look
// list again.
const maxCrowd = 16

// LookAround lists the directory again, with a new watch on the children, and returns such a channel as
// [Turn.Undisturbed] does. It counts for a session timeout after the call. LookAround returns nil if somebody waits for the
// turn's node, if there are more than 16 children, or if the listing fails, as it does when the turn is over. It waits
// for the servers, and for a connection.
func (t *Turn) LookAround() <-chan struct{} {
	t.made()
	ctx, cancel := t.during()
	defer cancel()
	l, err := t.s.List(ctx, t.q.dir, session.ListOptions{Children: true})
	if err != nil || len(l.Names) > maxCrowd || !slices.Contains(l.Names, t.me.Name) {
		return nil
	}
	p, err := t.kind.policy(t.me, t.config)
	if v := Decide(t.kind, p, t.me, l.Names); err != nil || v.Crowded || v.Stranger != nil {
		return nil
	}
	return l.Children.Done()
}

// Leave ends the turn, and has its node removed. It returns nil if the turn was over. It waits for nothing. ctx is for the hooks
// of the delete, which Leave calls: its caller holds no mutex that a hook may need.
func (t *Turn) Leave(ctx context.Context) *session.Removal {
	t.made()
	misuse.Context(ctx, "queue: Turn.Leave")
	if !t.end(ErrReleased) {
		return nil
	}
	turns.remove(t, 0)
	return t.remove(ctx)
}

// end ends the turn, and what watches its node. It reports whether this was the first call.
func (t *Turn) end(cause error) bool {
	if !t.over.end(cause) {
		return false
	}
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
	return true
}

// lose ends the turn by a loss, and its leases by that with which the turn has ended. The first call tells of the turn.
func (t *Turn) lose(cause error) {
	deleted, lost := errors.Is(cause, errDeleted), len(t.present())
	if deleted && t.over.why() == nil {
		// The session counts the node until a delete of ours has found that it is gone. A contender that enters because the
		// turn is over needs that room.
		t.remove(t.ctx)
	}
	first := t.end(failed("lock", t.q.dir, cause))
	loss := t.over.why()
	for _, l := range t.present() { // also for a later call: a lease can have begun since the first
		l.finish(loss)
	}
	if !first {
		return
	}
	if deleted {
		if lost > 0 {
			t.q.m.Logger().Warn("lock lost: its node was deleted, and not by its holder",
				"lock", t.q.dir, "node", t.node.Path, "session", hexID(t.s))
		}
		lost = 0
	}
	turns.remove(t, lost)
}

// loseNode ends the turn because its node was deleted, and returns why it is over. After a release the delete was ours, and
// loseNode changes nothing.
func (t *Turn) loseNode() error {
	t.lose(fmt.Errorf("%w: %w", session.ErrLost, errDeleted))
	return t.over.why()
}

// present returns the leases that have not ended.
func (t *Turn) present() (all []*Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := t.leases; l != nil; l = l.next {
		all = append(all, l)
	}
	return all
}

// Holder describes the contender that has the turn, as far as this process knows it.
func (t *Turn) Holder() Contender {
	t.made()
	c := Contender{Path: t.node.Path, Sequence: t.me.Sequence, Session: t.s.ID(), Holder: true, Own: true}
	c.HeldSince, c.Kept = turns.lookUp(t.s, t.node.Path)
	return c
}

// Beside takes another turn of the same queue next to t, for the holder of t's lease held: at once, in the same session, with
// the same sequence number and token. It is for a writer that becomes a reader, with no other writer in between: r is that of
// the reader, and the policy of t's kind says, by Replaces, that the node may leave another in its place.
//
// From the call on, t is neither kept nor handed over: a release of held leaves it. Beside returns when a listing has shown
// both nodes. After that the new turn does not depend on held and t any more. Beside calls no hooks, as [Queue.Begin]. It
// fails with ctx's error, why held has ended, and as Begin does. Then it leaves no node.
func (t *Turn) Beside(ctx context.Context, held *Lease, r Request) (*Turn, Effort, error) {
	t.made()
	misuse.Context(ctx, "queue: Turn.Beside")
	t.last.end(errTold) // before the look at held
	// The token is that of the first node: the second node is younger than the waiters behind the place. If the servers refuse to
	// tell it, the reader learns of that when it asks.
	_, _ = t.awaitToken(ctx, &held.over)
	if err := held.Err(); err != nil {
		return nil, Effort{Position: -1}, err
	}
	if r.Data == nil {
		r.Data = t.q.nodeData(ctx, &r)
	}
	c := t.q.newContender(t.s, &r)
	c.beside = t
	beside, err := c.contend(ctx, Waits)
	return beside, Effort{Attempts: 1, Position: c.position}, err
}
