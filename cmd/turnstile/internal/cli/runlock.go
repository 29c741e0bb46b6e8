package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// lockKind is a lock of any kind.
type lockKind interface {
	Acquire(context.Context) (*queue.Lease, error)
	TryAcquire(context.Context) (*queue.Lease, error)
}

// lockAt returns the lock that the flags of run ask for.
func lockAt(m *session.Manager, path string, f runFlags) (lockKind, error) {
	switch {
	case f.slotsGiven:
		return semaphore.New(m, path, f.slots)
	case f.write:
		return rwlock.New(m, path)
	case f.read:
		rw, err := rwlock.New(m, path)
		if err != nil {
			return nil, err
		}
		return rw.Reader(), nil
	}
	return zklock.New(m, path)
}

// revocation is the meaning of --on-revoke.
type revocation struct {
	ignore bool           // the command goes on
	signal syscall.Signal // for the command; 0: it is ended
}

// asked returns what tells that others ask for a lock, or nil if that is to be ignored.
func (r revocation) asked(l *queue.Lease) <-chan struct{} {
	if r.ignore {
		return nil
	}
	return l.Revoked()
}

const (
	revokeTerminate = "terminate"
	revokeIgnore    = "ignore"
)

func revocationOf(text string) (r revocation, err error) {
	if text == revokeIgnore {
		r.ignore = true
		return r, nil
	}
	if text != revokeTerminate {
		var ok bool
		if r.signal, ok = supervise.SignalOf(text); !ok {
			return r, usagef("--on-revoke %q: want terminate, ignore, or one of the signals INT, TERM, HUP, QUIT, USR1 and USR2", text)
		}
	}
	return r, nil
}

// prepare is useACL for the lock of run.
func (a *App) prepare(
	ctx context.Context, m *session.Manager, connect connector, f runFlags, path string, acl aclChoice,
) (*session.Manager, error) {
	limited, cancel := a.bound(ctx, f)
	defer cancel()
	m, err := a.useACL(limited, m, connect, path, acl, f.needs())
	if err != nil {
		err = a.notAcquired(ctx, m, f, path, err)
	}
	return m, err
}

// acquire waits for the lock as the flags say.
func (a *App) acquire(ctx context.Context, m *session.Manager, f runFlags, path string) (*runLock, error) {
	lock, err := lockAt(m, path, f)
	if err != nil {
		return nil, err
	}
	if f.label != "" {
		ctx = queue.WithLabel(ctx, f.label)
	}
	acquire := lock.Acquire
	if f.try {
		acquire = lock.TryAcquire
	}
	limited, cancel := a.bound(ctx, f)
	defer cancel()
	lease, err := acquire(limited)
	if err != nil {
		return nil, a.notAcquired(ctx, m, f, path, err)
	}
	l, err := newRunLock(ctx, m, lease)
	if err != nil {
		a.release(ctx, &runLock{lease: lease})
	}
	return l, err
}

// bound bounds the wait for the lock.
func (a *App) bound(ctx context.Context, f runFlags) (context.Context, context.CancelFunc) {
	switch {
	case f.waitGiven:
		return context.WithTimeout(ctx, f.wait)
	case f.try:
		return context.WithTimeout(ctx, a.connection.connect)
	}
	return ctx, func() {}
}

// notAcquired gives the error of an acquisition its exit status. ctx is without the bound of --wait.
func (a *App) notAcquired(ctx context.Context, m *session.Manager, f runFlags, path string, err error) error {
	switch {
	case f.try && errors.Is(err, queue.ErrBusy):
		return a.busy(ctx, m, path, err)
	case errors.As(err, new(*codeError)):
		return err
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrInvalidACL):
		return a.refused(path, f.needs(), err)
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return err
	case m.State() != session.Connected:
		return withCode(codeConnect, fmt.Errorf("no connection: %w", err))
	case f.try:
		return withCode(codeConnect, err)
	}
	return withCode(codeBusy, fmt.Errorf("not free within %v: %w", f.wait, err))
}

// namedHolders is how many holders the error of --try names.
const namedHolders = 3

// busy is the error of --try. It names the holders, if they still hold the lock.
func (a *App) busy(ctx context.Context, m *session.Manager, path string, err error) error {
	limited, cancel := context.WithTimeout(ctx, a.connection.connect)
	defer cancel()
	l, readErr := locks.NewTree(m, a.connection.connect).Read(limited, path, locks.Holders)
	if readErr != nil || len(l.Holders()) == 0 {
		return withCode(codeBusy, err)
	}
	var names []string
	holders := l.Holders()
	for i, c := range holders {
		if i == namedHolders {
			names = append(names, fmt.Sprintf("%d more", len(holders)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s, in the queue for %s", whoCell(c), ago(c.Since, time.Now())))
	}
	return withCode(codeBusy, fmt.Errorf("%s is held by %s; %s", clean(path), strings.Join(names, "; "), waiting(l.Waiting(), "")))
}

// runLock is a lease and its session. It implements supervise.Lock.
type runLock struct {
	lease   *queue.Lease
	session *session.Session
}

// newRunLock finds the session of a lease. The manager has one live session at a time. So if the
// lease is still held after the manager has returned its session, that is the lease's.
func newRunLock(ctx context.Context, m *session.Manager, lease *queue.Lease) (*runLock, error) {
	ctx, cancel := lease.Context(ctx)
	defer cancel()
	s, err := m.Session(ctx)
	if lost := lease.Err(); lost != nil {
		return nil, lost
	}
	return &runLock{lease, s}, err
}

// path returns the path of the lock.
func (l *runLock) path() string {
	node := l.lease.Path()
	return node[:strings.LastIndexByte(node, '/')]
}

func (l *runLock) Err() error               { return l.lease.Err() }
func (l *runLock) Deleted() bool            { return l.session.Err() == nil }
func (l *runLock) Remaining() time.Duration { return l.session.Remaining() }
func (l *runLock) Timeout() time.Duration   { return l.session.Timeout() }
func (l *runLock) Done() <-chan struct{}    { return l.lease.Done() }
