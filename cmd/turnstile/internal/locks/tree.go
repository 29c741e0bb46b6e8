package locks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// Tree makes requests, in one session after the other. Its methods may be called by several goroutines
// at once.
type Tree struct {
	m        *session.Manager
	patience time.Duration // how long to wait for a session
	requests atomic.Int64
}

// tries is how many connections may be lost while one answer is awaited, and how many sessions. The next try would
// probably end in the same way.
const tries = 3

// Retry is for session.WithRetry. A request is given up after a few tries: without that, a list that takes longer than
// the session can wait would be asked for again and again.
func Retry() backoff.BackOff { return &fewTries{BackOff: backoff.NewExponentialBackOff()} }

type fewTries struct {
	backoff.BackOff
	failed int
}

func (f *fewTries) NextBackOff() time.Duration {
	if f.failed++; f.failed >= tries {
		return backoff.Stop
	}
	return f.BackOff.NextBackOff()
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
// fails with [ErrUnreachable]. 0 is without a limit.
func NewTree(m *session.Manager, patience time.Duration) *Tree {
	return &Tree{m: m, patience: patience}
}

// Requests returns how many requests were made.
func (t *Tree) Requests() int64 { return t.requests.Load() }

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

// do makes one reading request, again if its session is lost.
func (t *Tree) do(ctx context.Context, what string, f func(*session.Session) error) error {
	for n := 1; ; n++ {
		s, err := t.Session(ctx)
		if err != nil {
			return err
		}
		t.requests.Add(1)
		err = f(s)
		switch {
		case errors.Is(err, session.ErrTooLong):
			return &TooLongError{what, err}
		case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, session.ErrLost) && n == tries && t.patience > 0:
			return &BrokenError{what, err}
		case errors.Is(err, session.ErrLost):
			continue
		}
		return err
	}
}

// Children returns the children of a node, and its stat.
func (t *Tree) Children(ctx context.Context, path string) (names []string, stat *zk.Stat, err error) {
	err = t.do(ctx, "the list of the children of "+path, func(s *session.Session) (err error) {
		names, stat, err = s.Children(ctx, path)
		return err
	})
	return names, stat, err
}

// Get returns the data of a node, and its stat.
func (t *Tree) Get(ctx context.Context, path string) (data []byte, stat *zk.Stat, err error) {
	err = t.do(ctx, "the data of "+path, func(s *session.Session) (err error) {
		data, stat, err = s.Get(ctx, path)
		return err
	})
	return data, stat, err
}

// Exists returns the stat of a node, or nil.
func (t *Tree) Exists(ctx context.Context, path string) (stat *zk.Stat, err error) {
	err = t.do(ctx, "the stat of "+path, func(s *session.Session) (err error) {
		stat, err = s.Exists(ctx, path)
		return err
	})
	return stat, err
}
