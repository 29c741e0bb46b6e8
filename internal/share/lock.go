package share

import (
	"context"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// Entry is a queue, and what a lock asks for there.
type Entry struct {
	Queue *queue.Queue
	Kind  *queue.Kind
	Name  string // may be ""
}

// Request returns what one acquisition asks for.
func (e *Entry) Request() queue.Request {
	return queue.Request{Kind: e.Kind, Prefix: e.Kind.Prefixes[0], Weight: 1, Name: e.Name}
}

// Lock is what every lock object has. The exported fields are set before the first use.
type Lock struct {
	Holds[*queue.Lease]
	Entry

	Turns *Turns // nil: each call has a node of its own
	Other *Lock  // the other half of a read-write lock
	Gate  *Gate  // may be nil
}

// Gate is a queue to pass before that of the lock.
type Gate struct {
	Entry
	Pass func(ctx context.Context, try bool) (*queue.Lease, error)
}

// Open makes l the lock of a kind.
func (l *Lock) Open(q *queue.Queue, kind *queue.Kind, o *Options) {
	l.Path, l.Manager, l.Async = q.Path(), q.Manager(), o.Async
	l.Entry = Entry{Queue: q, Kind: kind, Name: o.Name}
}

// Acquire gets a lease. A place that the Other only keeps would be in the way.
func (l *Lock) Acquire(ctx context.Context, try bool) (*queue.Lease, error) {
	if l.Other != nil && l.Other.Turns != nil {
		l.Other.Turns.GiveUpKept()
	}
	switch {
	case l.Turns != nil:
		return l.Turns.Acquire(ctx, try)
	case l.Gate != nil:
		return l.Gate.Pass(ctx, try)
	case try:
		return l.Queue.TryAcquire(ctx, l.Request())
	}
	return l.Queue.Acquire(ctx, l.Request())
}

// WhenIdle is for [Keys]. A hold ends by a call for the key.
func (l *Lock) WhenIdle(f func()) bool {
	idle := func(one *Lock) bool {
		return one == nil || !one.Any() && (one.Turns == nil || one.Turns.WhenIdle(f))
	}
	return idle(l) && idle(l.Other)
}

// HeldBy returns the lease of an owner, lost or not.
func (l *Lock) HeldBy(owner *queue.Owner) *queue.Lease {
	held := l.Of(owner)
	if held == nil && l.Other != nil {
		held = l.Other.Of(owner)
	}
	if held == nil {
		return nil
	}
	return held.Lease
}

// Apart reports whether Multi takes the lock by Acquire, in order: it is more than a node of its own in Queue.
func (l *Lock) Apart() bool { return l.Turns != nil || l.Gate != nil }

// LookAll looks at queues in one flight, and returns what it finds in the first that a try cannot pass.
func LookAll(ctx context.Context, all ...Entry) (queue.Effort, error) {
	efforts, errs := make([]queue.Effort, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Go(func() { efforts[i], errs[i] = one.Queue.Look(ctx, one.Request()) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return efforts[i], err
		}
	}
	return queue.Effort{}, nil
}

// Door leads from a public lock type T to its Lock, for Multi. A lock type embeds it under an alias, as in type door
// = share.Door[*Mutex], so that users do not see it. A type of a user that embeds a T has its methods too, and
// perhaps an Acquire of its own. So the Door leads on only from a T itself.
type Door[T any] struct{ lock *Lock }

// DoorTo returns a Door.
func DoorTo[T any](lock *Lock) Door[T] { return Door[T]{lock} }

func (d Door[T]) leadsFrom(lock any) *Lock {
	if _, itself := lock.(T); itself {
		return d.lock
	}
	return nil
}

// LockOf returns the Lock of a lock of this module, or nil.
func LockOf(lock any) *Lock {
	if l, ok := lock.(interface{ leadsFrom(lock any) *Lock }); ok {
		return l.leadsFrom(lock)
	}
	return nil
}

// Options are those of all locks.
type Options struct {
	Name      string
	Handovers int           // WithLocalHandover
	Keep      time.Duration // WithLazyRelease
	Async     bool          // WithAsyncRelease
}

// SetName is WithName.
func (o *Options) SetName(text string) error {
	o.Name = text
	return queue.CheckName(text)
}

// SetAsync is WithAsyncRelease.
func (o *Options) SetAsync() error {
	o.Async = true
	return nil
}

// SetKeep is WithLazyRelease.
func (o *Options) SetKeep(d time.Duration) error {
	o.Keep = d
	if d <= 0 || d > longestKeep {
		return misuse.Invalidf("WithLazyRelease(%v): want more than 0 and at most %v", d, longestKeep)
	}
	return nil
}

// Apply applies options, and joins their errors. A nil option is an error.
func Apply[O comparable, T any](opts []O, to *T, apply func(O, *T) error) error {
	var none O
	var errs []error
	for _, o := range opts {
		if o == none {
			errs = append(errs, misuse.Invalidf("nil option"))
		} else if err := apply(o, to); err != nil {
			errs = append(errs, err)
		}
	}
	return Join(errs...)
}
