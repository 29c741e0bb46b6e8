// Package locks reads the locks of an ensemble as they lie on its servers: which kind of lock a
// directory is, its holders and its waiters. It knows the nodes of this module, Apache Curator,
// kazoo and go-zookeeper.
//
// [Tree] makes the requests. [Tree.Read] reads one lock, and [Tree.Walk] finds all locks below a path. [Tree.Delete]
// deletes the node of a contender. The names and the data are read by pure functions: see [classify].
package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// Tree makes requests, in one session after the other. Its methods may be called by several goroutines
// at once.
type Tree struct {
	Patience time.Duration // how long to wait for a session; 0: without a limit
	m        *session.Manager
}

var (
	// ErrUnreachable is matched by errors that say that no server answers.
	ErrUnreachable = errors.New("no server answers")
	// ErrBroken is matched by the error of a read that lost its connection each time that it was tried. The next try would
	// probably end in the same way.
	ErrBroken = errors.New("did not come: the connection was lost 3 times meanwhile")
)

const tries = 3

// failKey is the key of a func(error) in the context of a request, which is called when the request has to be sent again.
type failKey struct{}

// NewTree returns the tree of a manager. A request waits for a session for patience at most, and then
// fails with [ErrUnreachable]. Call NewTree once for a manager.
func NewTree(m *session.Manager, patience time.Duration) *Tree {
	// Without this, a list that takes longer than the session can wait would be asked for again and again.
	m.AddTrace(session.Trace{Retry: func(ctx context.Context, r session.RetryInfo) {
		if fail, ok := ctx.Value(failKey{}).(func(error)); ok {
			fail(r.Cause)
		}
	}})
	return &Tree{Patience: patience, m: m}
}

// Session returns the live session.
func (t *Tree) Session(ctx context.Context) (*session.Session, error) {
	if t.Patience <= 0 {
		return t.m.Session(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	s, err := t.m.Session(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, ErrUnreachable
	}
	return s, err
}

// do makes one reading request, again if its session is lost. It is given up when its connection was lost a few times.
func (t *Tree) do(ctx context.Context, what string, f func(context.Context, *session.Session) error) error {
	limited, end := context.WithCancelCause(ctx)
	defer end(nil)
	failed := 0
	fail := func(cause error) {
		if failed++; failed == tries {
			end(fmt.Errorf("%s %w (%w)", what, ErrBroken, cause))
		}
	}
	limited = context.WithValue(limited, failKey{}, fail)
	for {
		s, err := t.Session(limited)
		if err == nil {
			err = f(limited, s)
		}
		switch {
		case limited.Err() != nil && ctx.Err() == nil:
			return context.Cause(limited)
		case errors.Is(err, session.ErrTooLong):
			return fmt.Errorf("%s is too long: %w", what, err)
		case !errors.Is(err, session.ErrLost):
			return err
		case t.Patience > 0:
			fail(err)
		}
	}
}

// Children returns the children of a node, and its stat.
func (t *Tree) Children(ctx context.Context, path string) (names []string, stat *zk.Stat, err error) {
	err = t.do(ctx, "the list of the children of "+path, func(ctx context.Context, s *session.Session) (err error) {
		names, stat, err = s.Children(ctx, path)
		return err
	})
	return names, stat, err
}

// WatchChildren returns a watch on the children of a node, which need not exist.
func (t *Tree) WatchChildren(ctx context.Context, path string) (w *session.Watch, err error) {
	err = t.do(ctx, "the list of the children of "+path, func(ctx context.Context, s *session.Session) (err error) {
		_, _, w, err = s.WatchChildren(ctx, path)
		return err
	})
	return w, err
}

// Get returns the data of a node, and its stat.
func (t *Tree) Get(ctx context.Context, path string) (data []byte, stat *zk.Stat, err error) {
	err = t.do(ctx, "the data of "+path, func(ctx context.Context, s *session.Session) (err error) {
		data, stat, err = s.Get(ctx, path)
		return err
	})
	return data, stat, err
}

// Now asks the servers for their time. They tell it only with a node that was made. So Now makes a node, writes to it and deletes
// it, in one transaction, which leaves nothing: below the root, or if that is refused, below a directory above the lock, where
// no contenders are. If all refuse, the clock is the one here.
func (t *Tree) Now(ctx context.Context, lock string) Clock {
	for _, dir := range []string{"/", path.Dir(lock)} {
		node := path.Join(dir, "turnstile-clock-"+rand.Text())
		var replies []zk.MultiResponse
		var begun time.Time
		err := t.do(ctx, "the time", func(ctx context.Context, s *session.Session) (err error) {
			begun = time.Now()
			replies, err = s.Multi(ctx, &zk.CreateRequest{Path: node}, &zk.SetDataRequest{Path: node}, &zk.DeleteRequest{Path: node, Version: 1})
			return err
		})
		if now := time.Now(); err == nil && len(replies) > 1 && replies[1].Stat != nil {
			// The leader's clock was read somewhere between the request and the answer.
			stamp := time.UnixMilli(replies[1].Stat.Mtime).Add(now.Sub(begun) / 2)
			return Clock{stamp, stamp.Sub(now)}
		}
	}
	return Clock{Time: time.Now()}
}
