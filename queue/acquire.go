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
// If the session is lost in the meantime, Acquire goes on in the next session, at the end of the queue. Other errors:
// [ErrConflict], [ErrSequence], [session.ErrTooManyNodes], [session.ErrInvalid], and what the server refused, such as
// zk.ErrNoAuth.
//
// When Acquire returns an error, its node is deleted for certain. The delete may still be under way, but needs no
// further call. If ctx has ended before the call, Acquire sends nothing.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Acquire")
	return q.acquire(ctx, r, Waits)
}

// TryAcquire is Acquire without the wait for other contenders: if it would have to wait for one, it returns [ErrBusy].
// It still waits for the servers, and for a session, until ctx ends.
//
// TryAcquire looks first. It lists the contenders behind a sync, in one round trip with the configuration if the kind
// has one. If they are in its way, that is all: it has written nothing. If they are not, it enters the queue as Acquire
// does, which takes a second round trip, and decides by the listing that shows its node. If it may not go then, it
// removes its node and returns ErrBusy. If the server refuses to list the directory, TryAcquire returns that error, and
// has written nothing either.
//
// ErrBusy was true at a moment after the call began, as far as the servers knew, with two exceptions. A leader that has
// been cut off from the others, or that lags behind its own commits, can answer the sync and then show an old list. And
// a contender that only tries, and is about to leave, makes another one busy for a round trip.
//
// Places that other processes may only keep (zklock.WithLazyRelease) leave only for a node that they see. If all
// contenders in its way are such places, or nodes of its own session that are about to be deleted, TryAcquire enters, and
// waits for them for a quarter of a second at most.
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

// Mode says for which others an acquisition waits. It is for makers of locks.
type Mode byte

// Without a look of its own, an acquisition enters at once. AtOnce and TriesInside are for one of several locks that are
// taken at once, or not at all.
const (
	Waits       Mode = iota // for all that are ahead
	Tries                   // it looks first, and then waits for places that may be kept: see [Queue.TryAcquire]
	TriesInside             // it waits as Tries does. Its caller has looked at all of the queues: see [Queue.Look]
	AtOnce                  // for nobody: it fails with [ErrBusy] if it may not go by the listing that shows its node
)

// Effort says what an acquisition took, for hooks.
type Effort struct {
	Attempts int // to enter; 0 if a turn of this process was used again
	Position int // contenders ahead at entry, or at the look of a try that was busy; -1 if there was no listing
}

// StartAcquiring begins an acquisition: it checks r and completes it, bounds the wait ([WithMaxWait]) and calls the hooks. It
// fails if ctx has ended. The caller gets the lease within the context that StartAcquiring returns, and calls end once, with
// what it has got. end tells the hooks, and returns the lease, or the error for the caller of the acquisition. It is for
// makers of locks that have more than one way to a lease. [Queue.Acquire] is StartAcquiring, [Queue.Begin], [Turn.Lease] and
// the end.
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

// withCause adds to the text of an error, which says that ctx has ended, the cause that the caller has given
// (context.WithCancelCause). The error does not match the cause: that may be the loss of another lock.
func withCause(ctx context.Context, err error) error {
	ended, cause := ctx.Err(), context.Cause(ctx)
	if ended == nil || !errors.Is(err, ended) || hasWaited(ctx) || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %v", err, cause) //nolint:errorlint // see above
}

// Begin is Acquire for a turn that several leases may have after each other, or TryAcquire with [Tries]. It takes one node
// after another through the queue, until one is granted: after a lost session it enters in the next. It calls no hooks of the
// acquisition, and its errors do not name the lock: [Queue.StartAcquiring] does both. It completes r, for a Begin after it.
// Begin is for makers of locks.
func (q *Queue) Begin(ctx context.Context, r *Request, how Mode) (*Turn, Effort, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Begin")
	effort := Effort{Position: -1}
	if err := r.complete(); err != nil {
		return nil, effort, err
	}
	for pace := rounds.NewPace(q.m.Backoff()); ; {
		s, err := q.m.Session(ctx)
		if err != nil {
			return nil, effort, err
		}
		effort.Attempts++
		c := q.newContender(s, r)
		t, err := c.contend(ctx, how)
		effort.Position = c.position
		if err == nil || !isLoss(err) {
			return t, effort, err
		}
		if hook := q.m.Trace().Retry; hook != nil {
			hook(ctx, session.RetryInfo{Op: "acquire", Try: effort.Attempts, Cause: err})
		}
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return nil, effort, err
		}
	}
}

// Look is the look of a try before it enters: see [Queue.TryAcquire]. It returns [ErrBusy] if others are in the way. It writes
// nothing, and what it has seen lets nobody go. The Effort has their number. r must be complete, as for Begin.
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

// lookFirst fails with ErrBusy if a try would have to wait. What it reads grants nothing, so a listing that is out of date
// costs a try, and no more. The contender has not entered.
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
	return nil // a bad policy is told by the entry: it has a configuration that is not older than its node
}

// isBusy reports whether a try gives up by a listing: it would wait for more than nodes that are about to be deleted, and
// places that nobody uses. Those leave only for a node that they see. That nobody uses a place is said by its name, unless
// this process holds it.
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

// keptPatience is how long a try waits for kept places to leave, once it has entered. The try cannot know how far the
// keepers are from the servers. The news of the try's node takes half a keeper's round trip, and so does the keeper's
// delete. A keeper that reads lists the directory in between, which takes one more. So 250 ms are enough for keepers with
// round trips of 100 ms, and for a caller with round trips of 100 ms, which needs one to watch them and half a one for the
// news that they are gone.
const keptPatience = 250 * time.Millisecond
