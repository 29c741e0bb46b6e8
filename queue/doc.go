// Package queue makes distributed locks on ZooKeeper. Packages zklock, rwlock and semaphore are built on it, and share
// what is here:
//
//   - A [Lease] is one hold: its end, its context, its fencing token, its release.
//   - [WithMaxWait], [WithOwner] and [WithLabel] change the context of a lock call. [LeaseFrom] finds the lease in
//     the context of a Do.
//   - [Queue.Acquire] lists the errors of all lock calls. [OpError] and [WaitError] say what failed and who was
//     ahead.
//   - [Queue.Contenders], [Queue.First] and [Queue.Observe] read a queue, and [Holders] a listing.
//
// # What is guaranteed, and what is not
//
//   - Two leases that conflict never report at the same instant that they are held. A lease ends, by the clock of its
//     session, before the server can give its place to another contender.
//   - Contenders are served in the order of their sequence numbers. All methods may be called by several goroutines at
//     once.
//   - From the moment at which a node may exist, an acquisition returns a lease or the node's delete is guaranteed.
//   - A lease can end at any moment. Work under it must end with [Lease.Context], or do no harm afterwards, or be
//     fenced with [Lease.Guard] or [Lease.Token].
//
// # A kind of lock of your own
//
// The contenders for a lock are ephemeral sequential children of one directory. A [Kind] names a kind of lock, and
// its [Policy] says when a contender may go. This is a mutex:
//
//	mutex := &queue.Kind{
//		Name:     "mutex",
//		Prefixes: []string{queue.PrefixLock},
//		Policy:   func(queue.Node) queue.Policy { return queue.Policy{} }, // no node may be ahead
//	}
//	q, err := queue.New(manager, "/reports/nightly")
//	if err != nil {
//		return err
//	}
//	lease, err := q.Acquire(ctx, queue.Request{Kind: mutex})
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)
//
// The nodes ahead of a contender are those with a lower sequence number, and its policy gives each a weight. One rule
// decides for all kinds of lock, in [Decide] and [Look]:
//
//	A contender may go when the weight that remains ahead of it is at most Slack.
//	Until then it watches the last nodes ahead of it, which weigh more than Slack.
//
// No wake-up is missed: while all of the watched nodes stand, the contender may not go. Entering takes one round trip,
// and a lock that comes free is taken without one, since no later contender gets ahead. A [Configuration] makes a lock
// depend on what all its users agree on.
//
// # For makers of locks
//
// Where several goroutines share a node, [Queue.Begin] waits for a [Turn], a node that has come to the front,
// [Turn.Lease] begins a hold of it, and [Queue.StartAcquiring] surrounds that with hooks and errors.
package queue
