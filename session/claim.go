package session

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/semaphore"

	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// claim is a session's right to have a node at a path. It implements plumbing.Claim, which has
// the rules.
type claim struct {
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

// claim is plumbing.Session.Claim.
func (s *Session) claim(ctx context.Context, path string) (*claim, error) {
	if err := validatePath(path); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if err := s.claims.enter(path).Acquire(waiting, 1); err != nil {
		s.claims.exit(path, false)
		return nil, cmp.Or(ctx.Err(), s.Err())
	}
	return &claim{s: s, path: path}, nil
}

// tryClaim is plumbing.Session.TryClaim.
func (s *Session) tryClaim(path string) (*claim, bool) {
	if !s.claims.enter(path).TryAcquire(1) {
		s.claims.exit(path, false)
		return nil, false
	}
	return &claim{s: s, path: path}, true
}

func (c *claim) Path() string { return c.path }

func (c *claim) Owns(stat *zk.Stat) bool {
	return stat.EphemeralOwner == c.s.ID()
}

func (c *claim) End() { c.once.Do(func() { c.s.claims.exit(c.path, true) }) }

func (c *claim) Remove(ctx context.Context, standing *zk.Stat, lost plumbing.Creation) plumbing.Removal {
	end := func() {
		resolveGone(lost)
		// The node is gone, and the watch event for that came before the answer. If the event
		// was lost, the next claim must not share the watch: it would show our old node.
		c.s.watches.forget(c.s.outward(c.path), nil)
		c.End()
	}
	noted := c.s.room.noted(c.path)
	p := c.s.persistence(ctx, "remove "+c.path, end, func(ctx context.Context) error {
		again := rounds.Pace{New: c.s.cfg.retry}
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
	return p.removal
}

// look returns the stat of the node at the path, or nil if there is none.
func (c *claim) look(ctx context.Context) (*zk.Stat, error) {
	if err := c.s.newSync(ctx, c.path); err != nil {
		return nil, err
	}
	return c.s.Exists(ctx, c.path)
}

// deleteOnce sends a delete and does not repeat it, even if the reply is lost.
func (s *Session) deleteOnce(ctx context.Context, path string, version int32) error {
	info := RequestInfo{Op: "delete", Path: path}
	if err := s.ready(ctx); err != nil {
		return opError(info, err)
	}
	_, err := try(ctx, s, info, never, func(done func(struct{}, error)) { s.sendDelete(ctx, path, version, nil, done) })
	if err != nil {
		return opError(info, err)
	}
	return nil
}
