package queue

import (
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

// Acquire waits until the contender may go, and returns the lease. It also returns when ctx ends, with an error that
// matches ctx.Err() and says who was ahead, and when the manager is closed, with one that matches [session.ErrClosed].
// After the loss of a session, Acquire goes on in the next one, at the end of the queue. Other errors: [ErrConflict],
// [ErrSequence], [session.ErrTooManyNodes], [session.ErrInvalid], and what the server refused, such as zk.ErrNoAuth.
//
// If Acquire fails, the delete of its node is certain, and needs no further call. If ctx has ended before the call,
// Acquire sends nothing.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Acquire")
	return q.acquire(ctx, r, Waits)
}

// TryAcquire is Acquire without the wait for other contenders: if it would have to wait for one, it returns [ErrBusy].
// It still waits for the servers, and for a session, until ctx ends.
//
// TryAcquire looks first: it lists the contenders behind a sync, in one round trip. If they are in its way, it returns
// and has written nothing. Otherwise it enters the queue, which takes a second round trip, and decides by the listing
// that shows its node.
//
// ErrBusy was true at a moment after the call began, with two exceptions. A leader that has been cut off, or that lags
// behind its own commits, can show an old list. And a try that is about to leave makes another one busy for a round
// trip.
//
// Places that other processes only keep (zklock.WithLazyRelease) leave for a node that they see. If only such places,
// or nodes of its own session that are being deleted, are in its way, TryAcquire enters, and waits for them for 250 ms.
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

// AtOnce and TriesInside are for one of several locks that are taken at once, or not at all.
const (
	Waits       Mode = iota // for all that are ahead
	Tries                   // it looks first, and then waits for places that may be kept: see [Queue.TryAcquire]
	TriesInside             // as Tries, without a look: its caller has looked at all of the queues by [Queue.Look]
	AtOnce                  // for nobody: it fails with [ErrBusy] if it may not go by the listing that shows its node
)

// Effort says what an acquisition took, for hooks.
type Effort struct {
	Attempts int // to enter; 0 if a turn of this process was used again
	Position int // contenders ahead at entry, or at the look of a try that was busy; -1 if there was no listing
}

// StartAcquiring begins an acquisition: it completes r, bounds the wait ([WithMaxWait]) and calls the hooks. It fails
// if ctx has ended. The caller gets the lease within inside, and calls end once, which tells the hooks and returns the
// lease, or the error for its caller. [Queue.Acquire] is StartAcquiring, [Queue.Begin], [Turn.Lease] and end. For
// makers of locks.
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
		ctx, tell = hook(ctx, session.AcquireInfo{
			Kind: r.Kind.Name, Name: r.Name, Chroot: q.m.Chroot(), Path: q.dir, Try: try, Weight: r.Weight,
			Local: r.Shared, Label: labelOf(ctx),
		})
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

// withCause adds to an error of ctx the text of the cause that the caller has given (context.WithCancelCause). The
// error does not match the cause: that may be the loss of another lock.
func withCause(ctx context.Context, err error) error {
	ended, cause := ctx.Err(), context.Cause(ctx)
	if ended == nil || !errors.Is(err, ended) || hasWaited(ctx) || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %v", err, cause) //nolint:errorlint // see above
}

// Begin is Acquire, or TryAcquire with [Tries], for a turn. It takes one node after another through the queue, until
// one is granted. Its errors do not name the lock. It completes r. For makers of locks.
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

// Look is the look of a try before it enters: see [Queue.TryAcquire]. It returns [ErrBusy] if others are in the way.
// The Effort has their number. StartAcquiring has completed r. For makers of locks.
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

// lookFirst fails with ErrBusy if a try would have to wait. It grants nothing: an old listing costs a try, and no more.
func (c *contender) lookFirst(ctx context.Context) error {
	configured := c.kind.Configuration != nil
	l, err := c.s.List(ctx, c.q.dir, session.ListOptions{Sync: true, Data: configured})
	if err != nil {
		return ignoreNoNode(err) // without a directory nobody contends
	}
	c.me = Node{Prefix: c.r.Prefix, Weight: c.r.Weight, Sequence: math.MaxInt32}
	if configured {
		c.config = configOf(l.Data, l.DataStat)
	}
	c.policy, err = c.kind.policy(c.me, c.config)
	if err == nil && c.policy.Slack >= 0 && c.isBusy(l.Names) {
		return ErrBusy
	}
	return nil // the entry tells of a bad policy, by a configuration that is not older than its node
}

// isBusy reports whether a try gives up by a listing: it would wait for more than nodes that are about to be deleted,
// and places that nobody uses, as their names say. Of a place of ours this process knows it.
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

// keptPatience is how long a try waits for kept places to leave, once it has entered: enough for round trips of 100 ms.
// A keeper needs one for the news and its delete, a reader one more, and the caller half a one to hear of that.
const keptPatience = 250 * time.Millisecond
