package election

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// hold calls f while this candidate has a lease, and gives the lease up, also if f panics. It returns the error of f with
// that of a loss.
func (e *Election) hold(ctx context.Context, lease *queue.Lease, f func(context.Context) error) (err error) {
	e.mu.Lock()
	e.held = lease
	e.mu.Unlock()
	inside, cancel := lease.Context(ctx)
	defer func() {
		err = withLoss(ctx, err, e.release(context.WithoutCancel(ctx), lease))
		cancel()
	}()
	return f(inside)
}

// confirmTime bounds the wait for the servers to confirm that a lease is released.
const confirmTime = time.Second

// release gives a lease up. It waits no longer than ctx allows, and for no connection: if there is none, or if it breaks,
// the release is certain all the same. It returns why the lease was lost, or the servers' refusal.
func (e *Election) release(ctx context.Context, lease *queue.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	defer e.Manager().Subscribe(func(c session.Change) {
		if c.To != session.Connected {
			cancel()
		}
	})() // which tells the present state too
	err := lease.Release(ctx)
	if errors.Is(err, queue.ErrReleasePending) {
		return nil
	}
	return err
}

// withLoss returns the error of a term: that of the leader's function, and why the lease was lost or not released. ctx is
// that of the campaign.
func withLoss(ctx context.Context, work, end error) error {
	if work == nil || end == nil {
		return cmp.Or(work, end)
	}
	lost := errors.Is(end, session.ErrLost) || errors.Is(end, session.ErrClosed)
	return &endError{end: end, work: work, hide: lost && ctx.Err() == nil}
}

// endError is the error of a term whose function has failed and whose lease has ended. The end of the lease ends the
// context of the function, which then usually returns an error that matches [context.Canceled]. Programs take such an
// error for a caller that has gone away. So an endError does not match it, unless the context of the campaign has ended
// too.
type endError struct {
	end, work error
	hide      bool // do not match the errors of a context in work
}

func (e *endError) Error() string {
	end, work := e.end.Error(), e.work.Error()
	switch {
	case strings.Contains(end, work) || e.hide && endsContext(e.work):
		return end
	case strings.Contains(work, end):
		return work
	}
	return end + "; " + work
}

func (e *endError) Unwrap() error { return e.end }

func (e *endError) Is(target error) bool {
	return !(e.hide && endsContext(target)) && errors.Is(e.work, target)
}

func (e *endError) As(target any) bool { return errors.As(e.end, target) || errors.As(e.work, target) }

// endsContext reports whether err is one of the two errors of an ended context. It does not look at what err wraps.
func endsContext(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded //nolint:errorlint // see above
}
