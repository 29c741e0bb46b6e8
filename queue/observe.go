package queue

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Observe follows the contender that is the first in the queue: the holder of a mutex, or the leader of an election. It
// does not contend.
//
//	for first, err := range q.Observe(ctx, queue.Mutex()) {
//		switch {
//		case err != nil:
//			return err // ctx has ended, or the manager was closed
//		case first.Path == "":
//			forget() // nobody contends
//		default:
//			show(first.ID, first.Since)
//		}
//	}
//
// The first pair has the contender that is the first now, or the zero value if nobody contends. The next pair comes
// when another contender is the first, or none. An error is the last pair: the error of ctx when ctx ends,
// [session.ErrClosed] when the manager is closed, [ErrConflict], [session.ErrInvalid] for a bad kind, or what the
// server refuses.
//
// Observe goes on across lost connections and sessions: meanwhile the last pair stands. It can miss a contender that
// was soon followed by another, but not the latest. It does not see holders behind the first, such as most leases of a
// semaphore: use [Queue.Contenders] for their kinds.
//
// Observe does not poll. It watches the first node, and then the next one, so a change costs one or two reads, however
// many contend. While there is no directory, it looks once in a session timeout: servers do not tell of one that the
// process may not read. It works in the goroutine of the loop. Several goroutines can use the sequence at once.
func (q *Queue) Observe(ctx context.Context, kind *Kind) iter.Seq2[Contender, error] {
	q.made()
	misuse.Context(ctx, "queue: Queue.Observe")
	return func(yield func(Contender, error) bool) {
		if err := kind.Check(); err != nil {
			yield(Contender{}, errQueue(err))
			return
		}
		o := observer{q: q, kind: kind, pace: *rounds.BriefPace(q.m.Backoff())}
		defer o.forget()
		for told, last := false, int64(0); ; {
			first, err := o.next(ctx)
			if err == nil && told && last == first.Token { // names can come again, and tokens cannot
				continue
			}
			told, last = true, first.Token
			if !yield(first, err) || err != nil {
				return
			}
		}
	}
}

// observer follows the first contender of a queue. When the first node of its list goes, the next one is the first,
// since nobody comes ahead of others.
type observer struct {
	q    *Queue
	kind *Kind
	pace rounds.Pace

	nodes  []Node         // the first, and those behind it
	listed int64          // the list showed all transactions on the directory up to this one
	watch  *session.Watch // on the first node, or on the directory; nil: look at once
	absent time.Duration  // if there was no directory: when to look again; otherwise 0
}

// next waits until there may be another first contender, and returns the one that there is.
func (o *observer) next(ctx context.Context) (first Contender, err error) {
	if o.watch != nil {
		began := time.Now()
		var again <-chan time.Time
		if o.absent > 0 {
			timer := time.NewTimer(o.absent)
			defer timer.Stop()
			again = timer.C
		}
		select {
		case <-o.watch.Done():
		case <-again:
		case <-ctx.Done():
			return Contender{}, ctx.Err()
		}
		o.pace.Rested(time.Since(began))
	}
	if err := o.pace.Wait(ctx, nil); err != nil {
		return Contender{}, err
	}
	err = o.q.inSession(WithoutMaxWait(ctx), &o.pace, func(ctx context.Context, s *session.Session) (err error) {
		if first, err = o.look(ctx, s); err != nil {
			o.forget()
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return Contender{}, ctx.Err()
	case err != nil:
		return Contender{}, failed("contenders of", o.q.dir, err)
	}
	return first, nil
}

// forget forgets the watch, if there is one. So the next look lists.
func (o *observer) forget() {
	if o.watch != nil {
		o.watch.Forget()
		o.watch = nil
	}
}

// look returns the first contender, or the zero value, and sets a watch that ends when that may change.
func (o *observer) look(ctx context.Context, s *session.Session) (first Contender, err error) {
	ended := o.watch
	o.watch = nil
	if ended != nil && ended.Event() == session.WatchDeleted && len(o.nodes) > 0 {
		o.nodes = o.nodes[1:]
	}
	// All that come behind the last of the list have higher numbers, until the end of the counter: then they are
	// negative.
	if n := len(o.nodes); n > 0 && o.nodes[n-1].Sequence >= 0 && o.nodes[n-1].Sequence < math.MaxInt32/2 {
		if first, err = o.watchFirst(ctx, s); !errors.Is(err, errMoved) {
			return first, err
		}
	}
	if err := o.list(ctx, s); err != nil {
		return Contender{}, err
	}
	if len(o.nodes) > 0 {
		return o.watchFirst(ctx, s)
	}
	if o.absent > 0 && ended != nil && ended.Event() == session.WatchPending { // on the directory, which is missing
		o.watch = ended
		return Contender{}, nil
	}
	if _, _, o.watch, err = s.WatchChildren(ctx, o.q.dir); err != nil {
		return Contender{}, err
	}
	if err := o.list(ctx, s); err != nil || len(o.nodes) == 0 {
		return Contender{}, err
	}
	return o.watchFirst(ctx, s) // it came before the watch was set
}

// list lists the directory. One that is missing has no contenders.
func (o *observer) list(ctx context.Context, s *session.Session) (err error) {
	o.nodes, o.listed, err = o.q.listed(ctx, s, o.kind)
	o.absent = 0
	if isNoNode(err) {
		o.absent = s.Timeout()
		return nil
	}
	return err
}

// watchFirst reads the first of the nodes and watches it. If that is gone, it is taken off, and the error is errMoved.
func (o *observer) watchFirst(ctx context.Context, s *session.Session) (Contender, error) {
	n := o.nodes[0]
	c := Contender{Path: o.q.nodePath(n.Name), Sequence: n.Sequence, Holder: true}
	data, stat, watch, err := s.Watch(ctx, c.Path)
	switch {
	case isNoNode(err):
		o.nodes = o.nodes[1:]
		return Contender{}, errMoved
	case err != nil:
		return Contender{}, err
	case stat.Czxid > o.listed: // it has the name of one that was listed, in a directory that was made anew
		o.nodes = nil
		return Contender{}, errMoved
	}
	c.fill(s, slices.Clone(data), stat) // which other watchers of the node share
	o.watch = watch
	return c, nil
}
