package session

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Removal is a guaranteed delete under way. All methods of a Removal that a method of a
// [Session] or [Claim] has not made panic.
type Removal struct {
	_ misuse.NoCopy

	done chan struct{}
	err  error
}

// made returns r. It panics if r is nil or a zero value.
func (r *Removal) made() *Removal {
	if r == nil || r.done == nil {
		panic("session: Removal not made by Session.Remove")
	}
	return r
}

// Done returns a channel that is closed when the server has said that what was to
// go is gone, when it has refused, or when the session has ended, which it goes
// with.
func (r *Removal) Done() <-chan struct{} { return r.made().done }

// Err returns, once Done is closed, nil if the server has said that it is gone, or
// else why it has not: the session's error, or the server's refusal.
func (r *Removal) Err() error { return r.made().err }

// Remove deletes a node for certain. It returns at once and needs no further call:
// the delete is retried in the background, across reconnects, until the server says
// that the node is gone or refuses it ([zk.ErrNoAuth]), or the session ends. For a
// node that is gone already it is a success. ctx is for the hooks of [Trace] alone: that
// it ends changes nothing.
func (s *Session) Remove(ctx context.Context, path string) *Removal {
	s.made()
	misuse.Context(ctx, "session: Session.Remove")
	return s.RemoveAfter(ctx, path, nil)
}

// RemoveAfter is Remove that waits, in the background, until after is closed; nil: it does
// not.
func (s *Session) RemoveAfter(ctx context.Context, path string, after <-chan struct{}) *Removal {
	s.made()
	misuse.Context(ctx, "session: Session.RemoveAfter")
	return s.persist(ctx, "remove "+path, nil, func(ctx context.Context) error {
		if after != nil {
			select {
			case <-after:
			case <-ctx.Done(): // the session has ended
				return ctx.Err()
			}
		}
		return ignoreNoNode(s.Delete(ctx, path, -1))
	})
}

// Sweep deletes, for certain and as Remove does, those children of dir whose names
// match: for a create whose reply was lost. It asks the server to catch up with the
// leader first, so that what was created before cannot be missed.
func (s *Session) Sweep(ctx context.Context, dir string, match func(name string) bool) *Removal {
	s.made()
	misuse.Context(ctx, "session: Session.Sweep")
	if match == nil {
		panic("session: Session.Sweep: nil function")
	}
	return s.persist(ctx, "sweep "+dir, nil, func(ctx context.Context) error {
		if err := s.Sync(ctx, dir); err != nil {
			return err
		}
		names, _, err := s.Children(ctx, dir)
		if err != nil {
			return ignoreNoNode(err)
		}
		for _, name := range names {
			if !match(name) {
				continue
			}
			if err := ignoreNoNode(s.Delete(ctx, path.Join(dir, name), -1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// persist repeats f in the background until it succeeds, the server refuses, or the
// session ends. It does not end with any caller's context, nor with a WithRetry
// that says stop. Before Done is closed it calls then, if there is one.
func (s *Session) persist(ctx context.Context, what string, then func(), f func(context.Context) error) *Removal {
	r := &Removal{done: make(chan struct{})}
	finish := func() {
		if then != nil {
			then()
		}
		close(r.done)
	}
	err := s.begin(func() {
		defer finish()
		wait := s.cfg.retry()
		life := s.lifeWith(ctx)
		for {
			r.err = f(life)
			switch {
			case r.err == nil:
				return
			case s.Err() != nil:
				r.err = s.Err()
				return
			case classify(r.err) == answered:
				s.cfg.log.Error("zookeeper refuses to remove a node; it stays until the session ends",
					"what", what, "err", r.err)
				return
			}
			if pause(s.life, untiring(wait)) != nil {
				r.err = s.Err()
				return
			}
		}
	})
	if err != nil {
		r.err = err
		finish()
	}
	return r
}

func ignoreNoNode(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// Adopt counts a node that was found after its create had looked lost towards
// [WithMaxNodes], as if its create had succeeded.
func (s *Session) Adopt(path string) { s.made().nodes.found(path) }
