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

// Observe follows the first contender of the queue: the holder of a mutex, or the leader of an election.
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
// The first pair has the present first contender, or the zero value if nobody contends. The next pair comes when that
// changes. An error is the last pair: that of ctx, [session.ErrClosed], [ErrConflict], [session.ErrInvalid] for a bad
// kind, or what the server refuses.
//
// Across lost connections and sessions the last pair stands. Observe can miss a contender that was soon followed by
// another. A change costs one or two reads. While there is no directory, Observe looks once in a session timeout,
// since servers do not tell of one that the process may not read. Several goroutines can use the sequence at once.
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
			if err == nil && told && last == first.Token { // tokens do not repeat, as names do
				continue
			}
			told, last = true, first.Token
			if !yield(first, err) || err != nil {
				return
			}
		}
	}
}

// observer follows the first contender. When that goes, the next of its list is the first, since nobody gets ahead.
type observer struct {
	q    *Queue
	kind *Kind
	pace rounds.Pace

	nodes  []Node
	listed int64          // the zxid that it shows
	watch  *session.Watch // nil: look at once
	absent time.Duration  // without a directory: when to look again; otherwise 0
}

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
	if err := o.pace.Wait(ctx, o.q.m.Done()); err != nil {
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

// forget makes the next look list.
func (o *observer) forget() {
	if o.watch != nil {
		o.watch.Forget()
		o.watch = nil
	}
}

// look sets a watch that ends when another contender may be the first.
func (o *observer) look(ctx context.Context, s *session.Session) (first Contender, err error) {
	ended := o.watch
	o.watch = nil
	if ended != nil && ended.Event() == session.WatchDeleted && len(o.nodes) > 0 {
		o.nodes = o.nodes[1:]
	}
	// Those behind the list have higher numbers, until the counter ends and they are negative.
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
	if o.absent > 0 && ended != nil && ended.Event() == session.WatchPending {
		o.watch = ended
		return Contender{}, nil
	}
	if _, _, o.watch, err = s.WatchChildren(ctx, o.q.dir); err != nil {
		return Contender{}, err
	}
	if err := o.list(ctx, s); err != nil || len(o.nodes) == 0 {
		return Contender{}, err
	}
	return o.watchFirst(ctx, s)
}

func (o *observer) list(ctx context.Context, s *session.Session) (err error) {
	o.nodes, o.listed, err = o.q.listed(ctx, s, o.kind)
	o.absent = 0
	if isNoNode(err) {
		o.absent = s.Timeout()
		return nil
	}
	return err
}

// watchFirst returns errMoved if the first node of the list is gone.
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
	case stat.Czxid > o.listed: // of the same name, in a new directory
		o.nodes = nil
		return Contender{}, errMoved
	}
	c.fill(s, slices.Clone(data), stat) // other watchers share the data
	o.watch = watch
	return c, nil
}
