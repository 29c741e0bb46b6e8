// Package locks reads the locks of an ensemble as they lie on its servers: which kind of lock a
// directory is, its holders and its waiters. It knows the nodes of this module, Apache Curator,
// kazoo and go-zookeeper.
//
// [Tree] makes the requests. [Tree.Read] reads one lock, and [Tree.Walk] finds all locks below a path. [Tree.Delete]
// deletes the node of a contender. The names and the data are read by pure functions: see [classify].
package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// Tree makes requests, in one session after the other. Its methods may be called by several goroutines
// at once.
type Tree struct {
	m        *session.Manager
	patience time.Duration // how long to wait for a session
}

// tries is how many connections may be lost while one answer is awaited, and how many sessions. The next try would
// probably end in the same way.
const tries = 3

// attempt counts how often one request is tried. It is a value of the request's context.
type attempt struct {
	failed int
	end    context.CancelCauseFunc
}

type attemptKey struct{}

// countTries is a hook that ends a request after a few tries: without it, a list that takes longer than the session can
// wait would be asked for again and again.
func countTries(ctx context.Context, r session.RetryInfo) {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return
	}
	if a.failed++; a.failed == tries {
		a.end(r.Cause)
	}
}

// BrokenError is the error of a read that lost its connection, or its session, each time that it was tried.
type BrokenError struct {
	What string // that was read
	Err  error  // of the last try
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("%s did not come: the connection was lost %d times meanwhile", e.What, tries)
}

func (e *BrokenError) Unwrap() error { return e.Err }

// TooLongError is the error of a read whose answer is longer than this program reads. It matches session.ErrTooLong.
type TooLongError struct {
	What string // that was read
	Err  error
}

func (e *TooLongError) Error() string { return fmt.Sprintf("%s is too long: %v", e.What, e.Err) }

func (e *TooLongError) Unwrap() error { return e.Err }

// ErrUnreachable is matched by errors that say that no server answers.
var ErrUnreachable = errors.New("no server answers")

// NewTree returns the tree of a manager. A request waits for a session for patience at most, and then
// fails with [ErrUnreachable]. 0 is without a limit. Call NewTree once for a manager.
func NewTree(m *session.Manager, patience time.Duration) *Tree {
	m.AddTrace(session.Trace{Retry: countTries})
	return &Tree{m: m, patience: patience}
}

// Session returns the live session.
func (t *Tree) Session(ctx context.Context) (*session.Session, error) {
	if t.patience <= 0 {
		return t.m.Session(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, t.patience, ErrUnreachable)
	defer cancel()
	s, err := t.m.Session(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, ErrUnreachable
	}
	return s, err
}

// do makes one reading request, again if its session is lost. It is given up when its connection was lost a few times.
func (t *Tree) do(ctx context.Context, what string, f func(context.Context, *session.Session) error) error {
	for n := 1; ; n++ {
		s, err := t.Session(ctx)
		if err != nil {
			return err
		}
		limited, end := context.WithCancelCause(ctx)
		err = f(context.WithValue(limited, attemptKey{}, &attempt{end: end}), s)
		gaveUp := context.Cause(limited)
		end(nil)
		switch {
		case gaveUp != nil && ctx.Err() == nil:
			return &BrokenError{what, gaveUp}
		case errors.Is(err, session.ErrTooLong):
			return &TooLongError{what, err}
		case errors.Is(err, session.ErrLost) && n == tries && t.patience > 0:
			return &BrokenError{what, err}
		case errors.Is(err, session.ErrLost):
			continue
		}
		return err
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

// SessionText returns the id of a session as ZooKeeper's own tools print it.
func SessionText(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }
