package session

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/semaphore"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Claim is the right to have an ephemeral node at a path at which other sessions want one
// too, of one at a time in this session. While it lasts, a node that is there and owned by
// this session is the claim's own, whatever became of the reply to its create, and whatever
// anybody has written to it; a uuid in its data would not tell that for certain.
//
// It ends with End, or when Remove has removed the node. All methods of a Claim that
// [Session.Claim] or [Session.TryClaim] has not made panic.
type Claim struct {
	s    *Session
	path string
	once sync.Once
}

// made returns c. It panics if c is nil or a zero value.
func (c *Claim) made() *Claim {
	if c == nil || c.s == nil {
		panic("session: Claim not made by Session.Claim")
	}
	return c
}

// claims are those of a session, and who waits for one: in the order in which they came.
type claims struct {
	mu sync.Mutex
	m  map[string]*turn // by path
}

// turn is taken by who has the claim. It is there while somebody has it or wants it.
type turn struct {
	*semaphore.Weighted
	users int // guarded by claims.mu
}

func (t *claims) enter(path string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = make(map[string]*turn)
	}
	if t.m[path] == nil {
		t.m[path] = &turn{Weighted: semaphore.NewWeighted(1)}
	}
	t.m[path].users++
	return t.m[path]
}

// exit is called once for each enter; had says that the turn was taken.
func (t *claims) exit(path string, had bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.m[path]
	if had {
		one.Release(1)
	}
	if one.users--; one.users == 0 {
		delete(t.m, path)
	}
}

// Claim waits until nobody else in this session claims the path, first come, first served. It
// sends nothing, and fails with ctx's error, the session's, or [ErrInvalid] for a bad path.
func (s *Session) Claim(ctx context.Context, path string) (*Claim, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Claim")
	if err := ValidatePath(path); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if err := s.claims.enter(path).Acquire(waiting, 1); err != nil {
		s.claims.exit(path, false)
		return nil, cmp.Or(ctx.Err(), s.Err())
	}
	return &Claim{s: s, path: path}, nil
}

// TryClaim is Claim that does not wait: it reports whether it has got the claim.
func (s *Session) TryClaim(path string) (*Claim, bool) {
	s.made()
	if !s.claims.enter(path).TryAcquire(1) {
		s.claims.exit(path, false)
		return nil, false
	}
	return &Claim{s: s, path: path}, true
}

// Path returns the path that is claimed.
func (c *Claim) Path() string { return c.made().path }

// Owns reports whether a node at the path that has this stat is the claim's.
func (c *Claim) Owns(stat *zk.Stat) bool {
	c.made()
	return stat.EphemeralOwner == c.s.ID()
}

// End ends the claim. No create of it may be under way any more, and none have succeeded
// that Remove was not done for. Only the first call counts.
func (c *Claim) End() { c.made().once.Do(func() { c.s.claims.exit(c.path, true) }) }

// Remove deletes the claim's node for certain, if it is there, as [Session.Remove] does, and
// never that of another session: a delete whose reply was lost is not simply repeated, since
// when it has been carried out another's node may stand at the path. Before it is, the server
// catches up with the leader, and the node's owner is compared. By then that earlier delete
// has been carried out or never will be, as servers take nothing from a session's former
// connection once it has a new one; so between the look and the next delete nobody takes our
// node away, but an operator: who deletes it in that moment can have the next one's deleted
// too.
//
// standing, if not nil, is the stat of the claim's node where that is certain to be there, as
// far as the present connection has told: then the first delete is sent without a look. It
// must not change any more. The claim ends when the node is gone, or with the session: after
// a refusal of the server the removal goes on in the background, and the claim stands until it
// has succeeded. ctx is for the hooks of [Trace] alone: that it ends changes nothing.
func (c *Claim) Remove(ctx context.Context, standing *zk.Stat) *Removal {
	c.made()
	misuse.Context(ctx, "session: Claim.Remove")
	end := func() {
		// The node is gone, and the news of that came before the answer; if it was lost, the
		// watch must not tell the next one that a node here is ours.
		c.s.watches.forget(c.s.outward(c.path), nil)
		c.End()
	}
	return c.s.persist(ctx, "remove "+c.path, end, func(ctx context.Context) error {
		again := rounds.Pace{New: c.s.cfg.retry}
		for {
			stat := standing
			standing = nil // true once only
			noted := c.s.nodes.noted(c.path)
			if stat == nil {
				var err error
				if stat, err = c.look(ctx); err != nil {
					return err
				}
			}
			if stat == nil || !c.Owns(stat) {
				c.s.nodes.deleted(c.path, noted)
				return nil
			}
			err := c.s.deleteOnce(ctx, c.path, stat.Version)
			if !errors.Is(err, zk.ErrBadVersion) {
				return ignoreNoNode(err)
			}
			// Somebody has changed the data meanwhile: look again.
			if err := again.Wait(ctx, nil); err != nil {
				return err
			}
		}
	})
}

// look returns the stat of what is at the path now, nil if there is nothing.
func (c *Claim) look(ctx context.Context) (*zk.Stat, error) {
	if err := c.s.Sync(ctx, c.path); err != nil {
		return nil, err
	}
	return c.s.Exists(ctx, c.path)
}

// deleteOnce sends a delete that is not repeated whatever becomes of it.
func (s *Session) deleteOnce(ctx context.Context, path string, version int32) error {
	info := RequestInfo{Op: "delete", Path: path}
	if err := s.ready(ctx); err != nil {
		return opError(info, err)
	}
	_, err := try(ctx, s, info, never, func() (struct{}, error) {
		return struct{}{}, s.sendDelete(path, version)
	})
	if err != nil {
		return opError(info, err)
	}
	return nil
}
