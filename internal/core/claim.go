package core

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/semaphore"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Claim is a session's right to have an ephemeral node at a path at which other sessions want a
// node too. A session has at most one claim to a path at a time. While the claim lasts, a node
// at the path that this session owns is the claim's node. That holds even if the reply to its
// create was lost, and even if somebody has overwritten its data, so a uuid in the data could
// not tell as much.
//
// The claim ends with End, or when Remove has removed the node.
type Claim struct {
	s    *Session
	path string
	once sync.Once
}

// claims has the claims of a session. Callers get the claim to a path in the order in which they
// came.
type claims struct {
	mu sync.Mutex
	m  map[string]*turn // by path
}

// turn is the claim to one path. It exists while a caller has the claim or waits for it.
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

// exit is called once for each enter. had says whether the caller had the claim.
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

// Claim waits until nobody else in this session has a claim to the path. Claims are granted
// in the order of the calls. Claim sends nothing. It fails with ctx's error, the session's,
// or session.ErrInvalid for a bad path.
func (s *Session) Claim(ctx context.Context, path string) (*Claim, error) {
	if err := misuse.ValidatePath(path); err != nil {
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

// TryClaim is Claim, except that it does not wait. It reports whether it got the claim.
func (s *Session) TryClaim(path string) (*Claim, bool) {
	if !s.claims.enter(path).TryAcquire(1) {
		s.claims.exit(path, false)
		return nil, false
	}
	return &Claim{s: s, path: path}, true
}

// Path returns the path that is claimed.
func (c *Claim) Path() string { return c.path }

// Owns reports whether a node at the path that has this stat is the claim's.
func (c *Claim) Owns(stat *zk.Stat) bool {
	return stat.EphemeralOwner == c.s.ID()
}

// End ends the claim. At that time no create of the claim's node may be in flight, and every
// node it made must have been removed with Remove. Further calls do nothing.
func (c *Claim) End() { c.once.Do(func() { c.s.claims.exit(c.path, true) }) }

// Remove deletes the claim's node for certain, if it is there, as Session.Remove does. It
// never deletes a node of another session.
//
// For that it does not simply repeat a delete whose reply was lost. If the server carried
// that delete out, a node of another session may stand at the path by now. So before the
// next delete it syncs and compares the node's owner. By then the earlier delete has been
// carried out or never will be, because servers take nothing from a session's old connection
// once it has a new one. Only an operator can delete the node between the comparison and the
// next delete. In that case the delete may hit a node that another session has just made.
//
// standing, if not nil, is the stat of the claim's node, which is certain to be there as far
// as the present connection has told. Then the first delete is sent without a look. standing
// must not change any more.
//
// The claim ends when the node is gone, or with the session. If the server refuses, the
// removal goes on in the background, and the claim lasts until the removal has succeeded.
// ctx is for the hooks of session.Trace only. The removal goes on after ctx has ended. lost is a create of the
// claim's node whose reply was lost, or nil.
func (c *Claim) Remove(ctx context.Context, standing *zk.Stat, lost *Creation) *Removal {
	end := func() {
		resolveGone(lost)
		// The node is gone, and the watch event for that came before the answer. If the event
		// was lost, the next claim must not share the watch: it would show our old node.
		c.s.watches.forget(c.s.outward(c.path), nil)
		c.End()
	}
	noted := c.s.room.noted(c.path)
	p := c.s.persistence(ctx, "remove "+c.path, end, func(ctx context.Context) error {
		again := rounds.Pace{New: c.s.cfg.Retry}
		for {
			stat := standing
			standing = nil // it holds for the first try only
			if stat == nil {
				var err error
				if stat, err = c.look(ctx); err != nil {
					return err
				}
			}
			if stat == nil || !c.Owns(stat) {
				c.s.room.deleted(noted)
				return nil
			}
			err := c.s.deleteOnce(ctx, c.path, stat.Version)
			if !errors.Is(err, zk.ErrBadVersion) {
				return ignoreNoNode(err)
			}
			// Somebody has changed the data in the meantime: look again.
			if err := again.Wait(ctx, nil); err != nil {
				return err
			}
		}
	})
	p.leave(noted, lost)
	p.start()
	return p.Removal
}

// look returns the stat of the node at the path, or nil if there is none.
func (c *Claim) look(ctx context.Context) (*zk.Stat, error) {
	if err := c.s.newSync(ctx, c.path); err != nil {
		return nil, err
	}
	return c.s.Exists(ctx, c.path)
}

// deleteOnce sends a delete and does not repeat it, even if the reply is lost.
func (s *Session) deleteOnce(ctx context.Context, path string, version int32) error {
	info := hooks.RequestInfo{Op: "delete", Path: path}
	if err := s.ready(ctx); err != nil {
		return opError(info, err)
	}
	_, err := try(ctx, s, info, never, func(done func(struct{}, error)) { s.sendDelete(ctx, path, version, nil, done) })
	if err != nil {
		return opError(info, err)
	}
	return nil
}
