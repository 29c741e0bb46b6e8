// Package queue makes distributed locks on ZooKeeper. Packages zklock, rwlock and semaphore are built on it. What all
// of their users need is here:
//
//   - A [Lease] is one hold: its end, its context, its fencing token, its release.
//   - [WithMaxWait], [WithOwner] and [WithLabel] are for the contexts of lock calls. [LeaseFrom] finds the lease in the
//     context of a Do.
//   - [OpError] and [WaitError] say what failed and who was ahead.
//   - [Queue.Contenders] lists a queue, [Queue.First] reads who is the first, and [Queue.Observe] follows that, of a
//     [Kind] such as [Mutex]. A tool that lists directories itself has [ParseNode] and [Holders].
//
// # Guarantees
//
//   - Two leases that conflict never report at the same instant that they are held. A lease ends, by the clock of its
//     session, before the server can give its place to another contender.
//   - Contenders are served in the order of their sequence numbers.
//   - No node is left behind. From the moment at which a node may exist, an acquisition returns a lease or the node's
//     delete is guaranteed.
//   - Entering the queue takes one round trip. Taking the lock when the place comes free takes none: no later contender
//     can get ahead, so a contender knows all nodes ahead of it once it has listed them.
//
// # What is not guaranteed
//
//   - A lease can end at any moment. Work under it must end with [Lease.Context], or do no harm afterwards, or be fenced
//     with [Lease.Guard] or [Lease.Token].
//   - If an operator deletes a holder's node, the next contender gets the lock at once. The holder finds out when its
//     server tells it. An uncontended lock does not watch its own node for the first 5 ms, to save a request.
//
// Hooks ([session.Trace]) run in place: a call of this package waits for them. A nil context panics.
//
// # A kind of lock of your own
//
// The contenders for a lock are ephemeral sequential children of one directory. A [Kind] names a kind of lock, and its
// [Policy] says when a contender may go. This is a mutex:
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
// The nodes ahead of a contender are those with a lower sequence number. Its policy gives each of them a weight. One
// rule decides for all kinds of lock:
//
//	A contender may go when the weight that remains ahead of it is at most Slack.
//	Until then it watches the last nodes ahead of it, just enough that they weigh more than Slack.
//
// No wake-up is missed: while all of the watched nodes stand, the contender may not go. There is no herd: at most 1.5 ×
// Slack + 2 waiters watch one node, and few of them list the directory when it leaves. [Decide] and [Look] are the rule
// as functions. A lock can also depend on what all its users agree on: see [Configuration]. The directory
// examples/intention of the repository has another kind: the intention locks of databases.
//
// # For makers of locks
//
// Package internal/share needs more, since several goroutines use one node. [Queue.Begin] waits for a [Turn], a node
// that has come to the front. [Turn.Lease] begins a hold of it. [Queue.StartAcquiring] surrounds that with hooks and
// errors that name the lock. [Turn.Undisturbed], [Turn.LookAround] and [Turn.Last] say whether a place may be kept.
// [Turn.Beside] makes a writer a reader. [Queue.Look] and [AtOnce] take one of several locks at once, or not at all.
package queue
