package locks

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

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
func (t *Tree) do(ctx context.Context, f func(*session.Session) error) error {
	for {
		s, err := t.Session(ctx)
		if err != nil {
			return err
		}
		t.requests.Add(1)
		if err = f(s); !errors.Is(err, session.ErrLost) {
			return err
		}
	}
}

// Children returns the children of a node, and its stat.
func (t *Tree) Children(ctx context.Context, path string) (names []string, stat *zk.Stat, err error) {
	err = t.do(ctx, func(s *session.Session) (err error) {
		names, stat, err = s.Children(ctx, path)
		return err
	})
	return names, stat, err
}

// Get returns the data of a node, and its stat.
func (t *Tree) Get(ctx context.Context, path string) (data []byte, stat *zk.Stat, err error) {
	err = t.do(ctx, func(s *session.Session) (err error) {
		data, stat, err = s.Get(ctx, path)
		return err
	})
	return data, stat, err
}

// Exists returns the stat of a node, or nil.
func (t *Tree) Exists(ctx context.Context, path string) (stat *zk.Stat, err error) {
	err = t.do(ctx, func(s *session.Session) (err error) {
		stat, err = s.Exists(ctx, path)
		return err
	})
	return stat, err
}
