// Package elected has terms of an election as holds, which tests acquire and release as they do with locks.
package elected

import (
	"cmp"
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Term is a term of a candidate that leads once.
type Term struct {
	Lease *queue.Lease

	e     *election.Election
	ctx   context.Context // of the term
	leave chan struct{}   // closed by Release
	ended chan struct{}   // closed when Run has returned
	why   error           // of the end of the term; read when ended is closed
}

// errOver ends a Run after its first term.
var errOver = errors.New("one term is over")

// Acquire campaigns, and returns when the candidate leads, when Run has failed, or when ctx has ended.
func Acquire(ctx context.Context, m *session.Manager, path string, opts ...election.Option) (*Term, error) {
	t := &Term{leave: make(chan struct{}), ended: make(chan struct{})}
	var err error
	t.e, err = election.New(m, path, append(opts, election.WithTermEnd(func(why error) error {
		t.why = why
		return errOver
	}))...)
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	leads := make(chan struct{})
	go func() {
		defer close(t.ended)
		defer stop()
		err = t.e.Run(run, func(inside context.Context) error {
			t.Lease, _ = queue.LeaseFrom(inside)
			t.ctx = inside
			close(leads)
			select {
			case <-t.leave:
			case <-inside.Done():
			}
			return nil
		})
	}()
	select {
	case <-leads:
		return t, nil
	case <-t.ended:
		return nil, cmp.Or(err, session.ErrClosed) // Run returns nil once the manager is closed
	case <-ctx.Done():
		stop()
		<-t.ended
		if err == nil || errors.Is(err, errOver) {
			err = ctx.Err()
		}
		return nil, err
	}
}

// Err returns nil while the context of the term is alive, and then why it has ended.
func (t *Term) Err() error {
	if t.ctx.Err() == nil {
		return nil
	}
	return context.Cause(t.ctx)
}

// Done returns a channel that is closed with the context of the term.
func (t *Term) Done() <-chan struct{} { return t.ctx.Done() }

// Release has the function of Run return.
func (t *Term) Release(ctx context.Context) error {
	close(t.leave)
	return t.await(ctx)
}

// Resign calls Resign of the election.
func (t *Term) Resign(ctx context.Context) error {
	t.e.Resign()
	return t.await(ctx)
}

// await waits for the end of Run. That does not tell whether a server has confirmed the release.
func (t *Term) await(ctx context.Context) error {
	select {
	case <-t.ended:
	case <-ctx.Done():
		return queue.ErrReleasePending
	}
	if t.why == nil || errors.Is(t.why, election.ErrResigned) && !errors.Is(t.why, session.ErrLost) {
		return queue.ErrReleasePending
	}
	return t.why
}
