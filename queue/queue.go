package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/session"
)

// Queue is a directory and the contenders in it. All Queues with one path, in all processes, are the
// same queue. The methods may be called by several goroutines at once. They panic if the Queue was not
// made by [New].
type Queue place.Queue

// place returns what q is. It panics if q is nil or a zero value.
func (q *Queue) place() *place.Queue { return (*place.Queue)(q).Made() }

// New returns the queue at an absolute path. It does no I/O. A nil manager or a bad path is an
// error that matches [session.ErrInvalid]. Bad paths include the root, ZooKeeper's own tree
// /zookeeper, and a path with an element that is the name of a contender: in the directory of
// another queue, such a child would be a contender that never leaves.
func New(m *session.Manager, dir string) (*Queue, error) {
	q, err := place.New((*core.Manager)(m), dir)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return (*Queue)(q), nil
}

// Identity returns host/pid of this process. Its nodes have that as their ID, as far as their data is not of another form.
func Identity() string { return nodedata.Identity() }

// Request says what an acquisition asks for. An acquisition fails with [session.ErrInvalid] if
// its Request is not valid.
type Request struct {
	// Kind is the kind of lock. It is required.
	Kind *Kind
	// Prefix is the prefix of the contender's node, one of the kind's. Default: the first one.
	Prefix string
	// Weight is how much to ask for. It is kept in the node's name. Default: 1. The limit is
	// 2³¹ − 1.
	Weight int
	// Data is the node's data. Default: {"id":"host/pid"} with the id of this process, with the traceparent that the
	// trace hooks give for the caller's context, and the label of [WithLabel]. The node of a [Local] has neither of the
	// last two, since several acquisitions share it. Data must not be [RevokeMessage].
	Data []byte
	// Name is a name for metrics and spans: see WithName of package zklock. It is text that can be printed, of at
	// most 200 bytes. Default: none.
	Name string
}

// Check returns an error that matches [session.ErrInvalid] if acquisitions would refuse the request. It does no I/O,
// and is for constructors that take parts of a Request from their callers.
func (r Request) Check() error { return r.place().Check() }

func (r Request) place() place.Request {
	return place.Request{Kind: r.Kind, Prefix: r.Prefix, Weight: r.Weight, Data: r.Data, Name: r.Name}
}

// Acquire waits until the contender may go, and returns the lease. It also returns when ctx ends, with an error that
// matches ctx.Err() and says who was ahead, and when the manager is closed, with one that matches [session.ErrClosed].
// After a wait of less than 20 ms, the first error only names a node. If the session is lost in the meantime, Acquire
// goes on in the next session, at the end of the queue. Other errors: [ErrConflict], [ErrSequence],
// [session.ErrTooManyNodes], [session.ErrInvalid], and what the server refused, such as zk.ErrNoAuth.
//
// When Acquire returns an error, its node is deleted for certain. The delete may still be under
// way, but needs no further call. If ctx has ended before the call, Acquire sends nothing.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	made := q.place()
	misuse.Context(ctx, "queue: Queue.Acquire")
	l, err := made.Acquire(ctx, r.place())
	return (*Lease)(l), err
}

// TryAcquire is Acquire without the wait for other contenders: if it would have to wait for one, it returns [ErrBusy].
// It still waits for the servers, and for a session, until ctx ends.
//
// TryAcquire looks first. It lists the contenders behind a sync, in one round trip with the configuration if the kind
// has one. If they are in its way, that is all: it has written nothing. If they are not, it enters the queue as Acquire
// does, which takes a second round trip, and decides by the listing that shows its node. If it may not go then, it
// removes its node and returns ErrBusy. What it has seen before it entered never lets it go. If the server refuses to
// list the directory, TryAcquire returns that error, and has written nothing either.
//
// ErrBusy was true at a moment after the call began, as far as the servers knew, with two exceptions. A leader that has
// been cut off from the others, or that lags behind its own commits, can answer the sync and then show an old list. And
// a contender that only tries, and is about to leave, makes another one busy for a round trip.
//
// Places that other processes may only keep ([WithLazyRelease]) leave only for a node that they see. If all contenders
// in its way are such places, TryAcquire enters, and waits for them for a quarter of a second at most. Nodes of its own
// session that are about to be deleted do not count when it looks, and after it has entered it waits for them as for
// such places.
func (q *Queue) TryAcquire(ctx context.Context, r Request) (*Lease, error) {
	made := q.place()
	misuse.Context(ctx, "queue: Queue.TryAcquire")
	l, err := made.TryAcquire(ctx, r.place())
	return (*Lease)(l), err
}

// Contenders returns the contenders of a kind, in order, as they were at a moment that has
// passed. The list is empty if there are none. If the directory does not exist, the error matches
// zk.ErrNoNode: nobody contends, and nobody has for a while, since servers remove directories that
// are empty; or the path is wrong. Contenders also fails with ctx's error, [ErrConflict],
// [session.ErrClosed], [session.ErrInvalid] for a bad kind, or what the server refused.
func (q *Queue) Contenders(ctx context.Context, kind *Kind) ([]Contender, error) {
	made := q.place()
	misuse.Context(ctx, "queue: Queue.Contenders")
	return made.Contenders(ctx, kind)
}

// First returns the contender of a kind that is the first in the queue, as it was at a moment that has passed: the
// holder of a mutex, or the leader of an election. If nobody contends, it returns the zero value. It lists the
// contenders and reads the node of the first: a program that asks often should use [Queue.Observe]. It fails as
// Contenders does.
func (q *Queue) First(ctx context.Context, kind *Kind) (Contender, error) {
	made := q.place()
	misuse.Context(ctx, "queue: Queue.First")
	if err := kind.Check(); err != nil {
		return Contender{}, fmt.Errorf("queue: %w", err)
	}
	first, err := made.First(ctx, kind)
	if errors.Is(err, zk.ErrNoNode) { // there is no directory
		err = nil
	}
	return first, err
}

// Manager returns the session manager that was given to [New].
func (q *Queue) Manager() *session.Manager { return (*session.Manager)(q.place().Manager()) }

// Path returns the queue's directory.
func (q *Queue) Path() string { return q.place().Path() }

// FullName returns the directory's name with servers and chroot, as [session.Manager.FullName]
// gives it.
func (q *Queue) FullName() string { return q.place().FullName() }
