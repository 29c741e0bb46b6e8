package election

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Observe returns what [Election.Leader] returns, now and after each change:
//
//	for leader, err := range e.Observe(ctx) {
//		switch {
//		case errors.Is(err, election.ErrNoLeader):
//			forget()
//		case err != nil:
//			return err // ctx has ended, or the manager was closed
//		default:
//			forwardTo(leader.ID)
//		}
//	}
//
// The first pair says which candidate leads, or is an error that matches [ErrNoLeader]. The next pair
// comes when another candidate leads, or none. Any other error is the last pair: the error of ctx when
// ctx ends, [session.ErrClosed] when the manager is closed, [queue.ErrConflict], or what the server
// refuses. So the loop ends with an error, or by a break or a return in its body.
//
// Observe goes on across lost connections and sessions. While there is no connection it knows of no
// change, and the last pair stands. It does not miss the latest change, but it can miss a leader that was
// soon followed by another. The next leader can be at work before Observe tells of it.
//
// Observe does not poll. It waits for a watch on a node, and besides looks again once in a session timeout.
// It works in the goroutine of the loop. A loop that has ended leaves a watch on the server until the leader
// changes, which later loops of the process share. The sequence can be used again, and by several goroutines
// at once. An observer need not be a candidate.
func (e *Election) Observe(ctx context.Context) iter.Seq2[queue.Contender, error] {
	e.made()
	misuse.Context(ctx, "election: Election.Observe")
	return func(yield func(queue.Contender, error) bool) {
		o := observer{e: e}
		for {
			leader, err := o.next(ctx)
			if err != nil && !errors.Is(err, ErrNoLeader) {
				yield(queue.Contender{}, e.failed(err, "contenders of "+e.Path()))
				return
			}
			if err != nil {
				err = e.failed(err)
			}
			if !yield(leader, err) {
				return
			}
		}
	}
}

// observer is one loop over Observe.
type observer struct {
	e    *Election
	s    *session.Session // of the watch
	told bool             // the loop knows a leader, or that there is none
	last string           // the path of the leader's node that the loop knows; "" if none leads
	pace rounds.Pace

	watch plumbing.Watch // ends when there may be another leader; nil: look at once
}

// next returns the next leader, or ErrNoLeader.
func (o *observer) next(ctx context.Context) (queue.Contender, error) {
	for {
		if err := o.wait(ctx); err != nil {
			return queue.Contender{}, err
		}
		leader, err := o.look(ctx)
		switch {
		case ctx.Err() != nil:
			return queue.Contender{}, ctx.Err()
		case errors.Is(err, session.ErrClosed):
			return queue.Contender{}, err
		case errors.Is(err, session.ErrLost), errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, errLeft):
			o.watch = nil
			continue
		case err != nil && !errors.Is(err, ErrNoLeader):
			return queue.Contender{}, err
		case o.told && o.last == leader.Path:
			continue
		}
		o.told, o.last = true, leader.Path
		return leader, err
	}
}

// wait waits until there may be another leader, or a session timeout has passed.
func (o *observer) wait(ctx context.Context) error {
	if o.watch == nil {
		return o.pace.Wait(ctx, nil)
	}
	began := time.Now()
	event := make(chan struct{}, 1)
	defer o.watch.Notify(event)()
	// No event is lost as far as we know. If one is lost all the same, it costs a session timeout.
	recheck := time.NewTimer(o.s.Timeout())
	defer recheck.Stop()
	select {
	case <-event:
	case <-recheck.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	o.pace.Rested(time.Since(began))
	return o.pace.Wait(ctx, nil)
}

// errLeft says that the leader has left while the observer looked.
var errLeft = errors.New("the leader has left")

// look returns the leader, or ErrNoLeader, and sets a watch that ends when that changes.
func (o *observer) look(ctx context.Context) (queue.Contender, error) {
	s, err := o.e.Manager().Session(ctx)
	if err != nil {
		return queue.Contender{}, err
	}
	o.s = s
	leader, err := o.e.leader(ctx)
	if errors.Is(err, ErrNoLeader) {
		if o.watch, err = plumbing.Of(s).WatchChildren(ctx, o.e.Path()); err != nil {
			return queue.Contender{}, err
		}
		leader, err = o.e.leader(ctx) // a candidate may have come before the watch was set
	}
	if err != nil {
		return queue.Contender{}, err
	}
	_, _, o.watch, err = plumbing.Of(s).Watch(ctx, leader.Path)
	if errors.Is(err, zk.ErrNoNode) {
		return queue.Contender{}, errLeft
	}
	return leader, err
}
