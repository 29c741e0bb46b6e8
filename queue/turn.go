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

// Turn is a node that has come to the front, until it is left, its session ends or its node is deleted. For makers of
// locks.
type Turn struct {
	_ misuse.NoCopy

	place
	config *Config

	ctx  context.Context // for hooks
	over ending

	known    ending
	token    int64
	tokenErr error
	revoked  ending
	last     ending

	pace *rounds.Pace

	mu     sync.Mutex
	delay  *time.Timer // of the first watch; nil: it was set, or is being set
	leases []*Lease
	lost   int // leases that the loss has ended
}

// watchAfter is how long a turn that did not have to wait goes without a watch on its node. Most locks are held for
// less, and save the request.
const watchAfter = 5 * time.Millisecond

func newTurn(ctx context.Context, c *contender) *Turn {
	t := &Turn{place: c.place, ctx: c.q.valuesFor(ctx)}
	if c.kind.Configuration != nil {
		config := c.config
		t.config = &config
	}
	if c.beside != nil {
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

// Session returns the session of the node.
func (t *Turn) Session() *session.Session { return t.made().s }

// Path returns the path of the node.
func (t *Turn) Path() string { return t.made().node.Path }

// Config returns the configuration that has let the contender go, if its kind has one.
func (t *Turn) Config() Config {
	if t.made().config == nil {
		return Config{}
	}
	return *t.config
}

// Entered returns a time before the listing that granted the turn, if it did not have to wait.
func (t *Turn) Entered() time.Time { return t.made().entered }

// Err returns nil while the turn lasts. It looks at the clock.
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

// AfterEnd calls f on a new goroutine when the turn is over.
func (t *Turn) AfterEnd(f func()) (stop func()) { return t.made().over.after(func() { go f() }) }

// Last returns a channel that is closed when the turn must be neither kept nor handed over: another client may have
// asked for the lock, or the holder becomes a reader.
func (t *Turn) Last() <-chan struct{} { return t.made().last.wait() }

// IsLast reports whether Last is closed.
func (t *Turn) IsLast() bool { return t.made().last.why() != nil }

// Undisturbed returns a channel that is closed when another contender may have come that waits for the node, or nil
// if one may have. With MayKeep, the listing that grants the turn sets that watch, so it costs no request. A server
// that takes the right to read away drops the event: trust the channel for a session timeout after [Turn.Entered].
func (t *Turn) Undisturbed() <-chan struct{} {
	if t.made().children == nil || t.children.Event() != session.WatchPending {
		return nil
	}
	return t.children.Done()
}

// maxCrowd bounds the cost of LookAround: each child that comes or goes makes all who look list again.
const maxCrowd = 16

// LookAround lists the directory, and returns a new channel as [Turn.Undisturbed] does, for a session timeout after
// the call. It returns nil if somebody waits for the node, there are more than 16 children, or the listing fails.
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

// Leave ends the turn, and has its node removed. It returns nil if the turn was over. The caller holds no mutex that
// hooks may need.
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

func (t *Turn) lose(cause error) (lost int) {
	t.mu.Lock()
	if t.over.why() == nil {
		t.lost = len(t.leases)
	}
	lost = t.lost
	t.mu.Unlock()
	deleted := errors.Is(cause, errDeleted)
	if deleted && t.over.why() == nil {
		// The session counts the node until our delete finds that it is gone.
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
	all := slices.Clone(t.leases) // a lease can have begun since an earlier call
	t.mu.Unlock()
	for _, l := range all {
		l.finish(t.over.why())
	}
	return lost
}

// loseNode returns why the turn is over: a release may have come first.
func (t *Turn) loseNode() error {
	t.lose(fmt.Errorf("%w: %w", session.ErrLost, errDeleted))
	return t.over.why()
}

// Holder describes the contender that has the turn.
func (t *Turn) Holder() Contender {
	t.made()
	c := Contender{Path: t.node.Path, Sequence: t.sequence, Session: t.s.ID(), Holder: true, Own: true}
	c.HeldSince, c.Kept = turns.lookUp(t.s, t.node.Path)
	return c
}

// Beside makes a writer a reader with no other writer in between: it takes a second turn next to t, with the same
// session, sequence number and token, while the lease held has t. r is for the reader. From the call on, t is neither
// kept nor handed over. Beside returns once a listing has shown both nodes: then the new turn no longer depends on t.
// It fails as [Queue.Begin] does, and with the end of held.
func (t *Turn) Beside(ctx context.Context, held *Lease, r Request) (*Turn, Effort, error) {
	t.made()
	misuse.Context(ctx, "queue: Turn.Beside")
	t.last.end(errTold) // a release from now on leaves t; held tells of one that has kept it or handed it over
	// The czxid of the second node is no token: the waiters behind the place have lower ones.
	_, _ = t.awaitToken(ctx, &held.over)
	if err := held.Err(); err != nil {
		return nil, Effort{Position: -1}, err
	}
	c := t.q.newContender(t.s, &r)
	c.beside = t
	beside, err := c.contend(ctx, Waits)
	return beside, Effort{Attempts: 1, Position: c.position}, err
}

// WatchNow sets the watch on the node that otherwise waits until 5 ms after the grant.
func (t *Turn) WatchNow() {
	if t.made().stopDelay() {
		go t.watchOwn()
	}
}

func (t *Turn) stopDelay() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	delay := t.delay
	t.delay = nil
	return delay != nil && delay.Stop()
}

// watchOwn runs once at a time.
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
	default: // refused: the holder hears neither of a request nor of the node's delete
		t.setToken(0, err)
	}
}

func (t *Turn) during() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	stop := t.over.after(func() { cancel(t.over.why()) })
	return ctx, func() { stop(); cancel(nil) }
}

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
			t.last.end(errTold) // it may be a request for the lock
			if t.pace == nil {
				t.pace = rounds.NewPace(t.q.m.Backoff())
			}
			t.pace.Rested(time.Since(set))
			t.watchOwn()
		}
	})
}

func (t *Turn) setToken(czxid int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known.why() == nil {
		t.token, t.tokenErr = czxid, err
		t.known.end(errTold)
	}
}

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
