package share

import (
	"context"
	"sync"

	"github.com/turnstile-go/turnstile/queue"
)

// Member is what Multi of package zklock has to know of a lock that it takes together with others.
type Member struct {
	Queue   *queue.Queue
	Request queue.Request
	// Apart says that the lock is more than a node of its own in Queue: goroutines share the place, or a second queue comes
	// behind the first one. Then Multi takes it by the methods that users call, and at its place in the order.
	Apart bool
	// LookAlso has further queues that a try of the lock has to pass.
	LookAlso []Look
	// Async says that Unlock of the lock waits for no server.
	Async bool
	// Owned has the holds by which an owner may have the lock, so that it would wait for itself.
	Owned []*Holds[*queue.Lease]
}

// Look is a queue that a try has to pass, and what it asks for there.
type Look struct {
	Queue   *queue.Queue
	Request queue.Request
}

// LookAll looks at the queues that a try has to pass, in one flight. It returns [queue.ErrBusy] if others are in the way in one
// of them. The Effort has their number in the first such queue.
func LookAll(ctx context.Context, all ...Look) (effort queue.Effort, err error) {
	efforts, errs := make([]queue.Effort, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Go(func() { efforts[i], errs[i] = one.Queue.Look(ctx, one.Request) })
	}
	group.Wait()
	for i := range all {
		if effort, err = efforts[i], errs[i]; err != nil {
			break
		}
	}
	return effort, err
}

// HeldBy returns the lease that an owner has of the lock, lost or not. It returns nil if the owner has none.
func (m *Member) HeldBy(owner *queue.Owner) *queue.Lease {
	for _, holds := range m.Owned {
		if lease, ok := holds.Of(owner); ok {
			return lease
		}
	}
	return nil
}

// Door leads from a public lock type T to its Member, for Multi, which sees only an interface. A lock type embeds its Door
// under an alias, as in type door = share.Door[*Mutex], so that users see neither the field nor the method. A type of a user that
// embeds a T has the method too, and can have its own Acquire. So the Door leads on only from a T itself.
type Door[T any] struct{ member *Member }

// DoorTo returns a door to a lock.
func DoorTo[T any](member *Member) Door[T] { return Door[T]{member} }

func (d Door[T]) leadsFrom(lock any) *Member {
	if _, itself := lock.(T); itself {
		return d.member
	}
	return nil
}

// MemberOf returns the Member behind a lock of this module. It returns nil for one of another type.
func MemberOf(lock any) *Member {
	if l, ok := lock.(interface{ leadsFrom(lock any) *Member }); ok {
		return l.leadsFrom(lock)
	}
	return nil
}
