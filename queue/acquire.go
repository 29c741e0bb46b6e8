package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Acquire waits until the contender may go, and returns the lease. If ctx ends before, it returns at once an error
// that matches ctx.Err() and says who was ahead: see [WaitError]. A lost connection or session is no error: Acquire
// goes on waiting, after a lost session or the delete of its node at the end of the queue. Other errors are
// [session.ErrClosed] if the manager is closed, [ErrMaxWait], [ErrConflict], [ErrSequence],
// [session.ErrTooManyNodes], [session.ErrInvalid], and what the server refuses, such as zk.ErrNoAuth. If ctx has
// ended before the call, nothing is sent.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Acquire")
	return q.acquire(ctx, r, Waits)
}

// TryAcquire is Acquire without the wait for other contenders: it returns [ErrBusy] if one is in its way. It still
// waits for the servers, and for a session, until ctx ends.
//
// It lists the contenders first, and writes nothing if it is busy. Otherwise it enters the queue, and waits for 250 ms
// at most if only places of other processes that may be kept (zklock.WithLazyRelease: in use they look the same), or
// nodes of its own session that are being deleted, are in its way. ErrBusy can be stale if the leader has been cut off
// or lags. A try that is about to leave makes another one busy for a round trip.
func (q *Queue) TryAcquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.TryAcquire")
	return q.acquire(ctx, r, Tries)
}

func (q *Queue) acquire(ctx context.Context, r Request, how Mode) (l *Lease, err error) {
	ctx, end, err := q.StartAcquiring(ctx, &r, how == Tries)
	if err != nil {
		return nil, err
	}
	var t *Turn
	effort, err := Effort{Position: -1}, errCut // if the policy panics, or ends the goroutine
	defer func() {
		if t == nil {
			_, err = end(nil, effort, err)
		}
	}()
	if t, effort, err = q.Begin(ctx, &r, how); err != nil {
		return nil, err
	}
	return end(t.Lease(ctx, nil), effort, nil)
}

// Mode says for which others an acquisition waits. For makers of locks.
type Mode byte

const (
	Waits       Mode = iota
	Tries            // as [Queue.TryAcquire]
	TriesInside      // as Tries, after a [Queue.Look]
	AtOnce           // for nobody
)

// Effort is for hooks.
type Effort struct {
	Attempts int // to enter; 0 if a turn of this process was used again
	Position int // contenders in the way; -1 if not known
}

// StartAcquiring completes r, bounds the wait ([WithMaxWait]) and calls the hooks. The caller gets the lease within
// the context inside, and calls end once, which returns the lease or the error for its caller. For makers of locks.
func (q *Queue) StartAcquiring(
	ctx context.Context, r *Request, try bool,
) (inside context.Context, end func(*Lease, Effort, error) (*Lease, error), err error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.StartAcquiring")
	if err := r.complete(); err != nil {
		return nil, nil, failed("acquire", q.dir, err)
	}
	ctx, waited := BeginWait(ctx)
	if err := ctx.Err(); err != nil {
		return nil, nil, waited(failed("acquire", q.dir, err))
	}
	var tell func(session.AcquireResult)
	if hook := q.m.Trace().Acquire; hook != nil {
		var next context.Context
		next, tell = hook(ctx, session.AcquireInfo{
			Kind: r.Kind.Name, Name: r.Name, Chroot: q.m.Chroot(), Path: q.dir, Try: try, Weight: r.Weight,
			Local: r.Shared, Label: labelOf(ctx),
		})
		ctx = cmp.Or(next, ctx)
	}
	return ctx, func(l *Lease, effort Effort, err error) (*Lease, error) {
		told := session.AcquireResult{Attempts: effort.Attempts, Position: effort.Position}
		if err != nil {
			err = waited(withCause(ctx, q.explain(ctx, err, nil)))
			if told.Busy = errors.Is(err, ErrBusy); !told.Busy {
				told.Err = err
			}
			l, err = nil, failed("acquire", q.dir, err)
		} else {
			_ = waited(nil)
		}
		if tell != nil {
			tell(told)
		}
		return l, err
	}, nil
}

// withCause adds the text of the context's cause. The error does not match that, which may be the loss of another
// lock.
func withCause(ctx context.Context, err error) error {
	ended, cause := ctx.Err(), context.Cause(ctx)
	if ended == nil || !errors.Is(err, ended) || hasWaited(ctx) || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %v", err, cause) //nolint:errorlint // see above
}

// Begin is Acquire for a turn. Its errors do not name the lock. For makers of locks.
func (q *Queue) Begin(ctx context.Context, r *Request, how Mode) (*Turn, Effort, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Begin")
	effort := Effort{Position: -1}
	if err := r.complete(); err != nil {
		return nil, effort, err
	}
	var t *Turn
	err := q.inSession(ctx, rounds.NewPace(q.m.Backoff()), func(ctx context.Context, s *session.Session) (err error) {
		effort.Attempts++
		c := q.newContender(s, r)
		t, err = c.contend(ctx, how)
		effort.Position = c.position
		if hook := q.m.Trace().Retry; isLoss(err) && hook != nil {
			hook(ctx, session.RetryInfo{Op: "acquire", Try: effort.Attempts, Cause: err})
		}
		return err
	})
	return t, effort, err
}

// Look fails with [ErrBusy] if others are in the way: it is how a try begins. [Queue.StartAcquiring] has completed r.
// For makers of locks.
func (q *Queue) Look(ctx context.Context, r Request) (Effort, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Look")
	effort := Effort{Position: -1}
	err := q.inSession(ctx, rounds.NewPace(q.m.Backoff()), func(ctx context.Context, s *session.Session) error {
		c := q.newContender(s, &r)
		err := c.lookFirst(ctx)
		effort.Position = c.position
		return err
	})
	return effort, err
}

// lookFirst grants nothing: an old listing only costs a try.
func (c *contender) lookFirst(ctx context.Context) error {
	configured := c.kind.Configuration != nil
	l, err := c.s.List(ctx, c.q.dir, session.ListOptions{Sync: true, Data: configured})
	if err != nil {
		return ignoreNoNode(err)
	}
	c.me = Node{Prefix: c.r.Prefix, Weight: c.r.Weight, Sequence: math.MaxInt32}
	if configured {
		c.config = configOf(l.Data, l.DataStat)
	}
	c.policy, err = c.kind.policy(c.me, c.config)
	if err == nil && c.policy.Slack >= 0 && c.isBusy(l.Names) {
		return ErrBusy
	}
	return nil // the entry reports a bad policy, by a newer configuration
}

// isBusy reports whether a try would wait for more than nodes that are being deleted and places that may be kept. Of a
// place of ours this process knows whether it is in use.
func (c *contender) isBusy(names []string) bool {
	removing := func(name string) bool { return c.s.Removing(c.q.nodePath(name)) }
	v := Decide(c.kind, c.policy, c.me, slices.DeleteFunc(slices.Clone(names), removing))
	held := func(b Blocker) bool {
		since, _ := turns.lookUp(c.s, c.q.nodePath(b.Node.Name))
		return !since.IsZero()
	}
	if v.Go || v.Stranger != nil || v.OnlyKept && !slices.ContainsFunc(v.Watch, held) {
		return false
	}
	if c.position < 0 {
		c.position = v.Count()
	}
	return true
}

// keptPatience is how long a try that has entered waits for kept places: 2.5 round trips of 100 ms.
const keptPatience = 250 * time.Millisecond
