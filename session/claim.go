package session

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
)

// Claim is the right to have an ephemeral node at a path at which other sessions want one
// too, of one at a time in this session. While it lasts, a node that is there and owned by
// this session is the claim's own, whatever became of the reply to its create, and whatever
// anybody has written to it; a uuid in its data would not tell that for certain.
//
// It ends with End, or when Remove is done.
type Claim struct {
	s     *Session
	path  string
	once  sync.Once
	ended chan struct{}
}

// claims holds the claims of a session.
type claims struct {
	mu sync.Mutex
	m  map[string]*Claim // by path
}

// take returns a new claim to a path, or the one there is.
func (t *claims) take(s *Session, path string) (c *Claim, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.m[path]; c != nil {
		return c, false
	}
	if t.m == nil {
		t.m = make(map[string]*Claim)
	}
	c = &Claim{s: s, path: path, ended: make(chan struct{})}
	t.m[path] = c
	return c, true
}

func (t *claims) drop(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, path)
}

// Claim waits until nobody else in this session claims the path. It sends nothing, and fails
// with ctx's error, the session's, or [ErrInvalid] for a bad path.
func (s *Session) Claim(ctx context.Context, path string) (*Claim, error) {
	if err := ValidatePath(path); err != nil {
		return nil, err
	}
	for {
		c, fresh := s.claims.take(s, path)
		if fresh {
			return c, nil
		}
		select {
		case <-c.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.Done():
			return nil, s.Err()
		}
	}
}

// TryClaim is Claim that does not wait: it reports whether it has got the claim.
func (s *Session) TryClaim(path string) (*Claim, bool) {
	c, fresh := s.claims.take(s, path)
	if !fresh {
		return nil, false
	}
	return c, true
}

// Path returns the path that is claimed.
func (c *Claim) Path() string { return c.path }

// Owns reports whether a node at the path that has this stat is the claim's.
func (c *Claim) Owns(stat *zk.Stat) bool { return stat.EphemeralOwner == c.s.ID() }

// End ends the claim. No create of it may be under way any more, and none have succeeded
// that Remove was not done for. Only the first call counts.
func (c *Claim) End() {
	c.once.Do(func() {
		c.s.claims.drop(c.path)
		close(c.ended)
	})
}

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
// must not change any more. The claim has ended when the removal is done. ctx is for the hooks
// of [Trace] alone: that it ends changes nothing.
func (c *Claim) Remove(ctx context.Context, standing *zk.Stat) *Removal {
	return c.s.persist(ctx, "remove "+c.path, c.End, func(ctx context.Context) error {
		for {
			stat := standing
			standing = nil // true once only
			if stat == nil {
				var err error
				if stat, err = c.look(ctx); err != nil {
					return err
				}
			}
			if stat == nil || !c.Owns(stat) {
				c.s.nodes.deleted(c.path)
				return nil
			}
			err := c.s.deleteOnce(ctx, c.path, stat.Version)
			if !errors.Is(err, zk.ErrBadVersion) {
				return ignoreNoNode(err)
			}
			// Somebody has changed the data meanwhile: look again.
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
		return struct{}{}, s.conn.Delete(s.outward(path), version)
	})
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		s.nodes.deleted(path)
	}
	if err != nil {
		return opError(info, err)
	}
	return nil
}
