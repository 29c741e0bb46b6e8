// Package queue makes distributed locks on ZooKeeper. Packages zklock, rwlock and semaphore are built on it. Use it
// directly to make a kind of lock that they do not have. The directory examples/intention of the repository has one: the
// intention locks that databases use for tables and their rows.
//
// The contenders for a lock are ephemeral sequential children of one directory. Their sequence numbers order them. A
// [Kind] names a kind of lock, and its [Policy] says when a contender may go. This is a mutex:
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
// # The rule
//
// The nodes ahead of a contender are those with a lower sequence number. The contender's policy gives each of them a
// weight. One rule decides for all kinds of lock:
//
//	A contender may go when the weight that remains ahead of it is at most Slack.
//	Until then it watches the last nodes ahead of it, just enough that they weigh more than Slack.
//
// No wake-up is missed: while all of the watched nodes stand, the contender may not go. There is no herd either. When a
// mutex is released, two waiters wake up: the next holder, and the waiter behind it, which then lists the directory. In
// general at most 1.5 × Slack + 2 waiters watch one node, and few of them list the directory when the node leaves.
//
// The recipe is that of the ZooKeeper documentation and of Apache Curator's LockInternals, with weights in place of an
// index. [Decide] and [Look] are the rule as functions: one reads a listing, and the other what watches have told. A lock
// can also depend on what all its users agree on, such as the limit of a semaphore: see [Configuration].
//
// # Pages and tools
//
// [Queue.Contenders] lists a queue, [Queue.First] reads who is the first in it, and [Queue.Observe] follows that without a
// poll. They need a [Kind]: [Mutex], [Reader], [Writer] and [Semaphore] return those of the locks of this module. A tool
// that lists directories itself parses the names with [ParseNode], and asks [Holders] who holds.
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
// # For makers of locks
//
// A kind of lock needs no more than a Kind and [Queue.Acquire]. The lock packages of this module need more, since several
// goroutines use one node, a holder becomes another contender, or several locks are taken at once.
//
//   - A [Turn] is a node that has come to the front. [Queue.Begin] waits for one. [Turn.Lease] begins a hold of it, and says
//     what a release of that hold does: hand the turn over by a further Lease, keep it, or [Turn.Leave] it.
//   - [Queue.StartAcquiring] and the end that it returns surround any way to a lease with the hooks, the bound of
//     [WithMaxWait] and errors that name the lock. [Waiting] and [Queue.Why] say what one goroutine waits for on behalf of
//     others.
//   - A place may be kept while nobody holds it: see MayKeep of [Request], [Turn.Undisturbed], [Turn.LookAround],
//     [Turn.Last], and [Turn.WatchNow] for a hand-over.
//   - [Turn.Beside] takes a second turn with the same sequence number, for a writer that becomes a reader.
//   - [Queue.Look] and [AtOnce] take one of several locks at once, or not at all.
//   - [Lease.StartRelease], [Lease.Unlock] and [Lease.GiveUp] are releases of other kinds.
//   - [BeginWait], [OwnerOf] and [WithEnd] do for calls and objects of your own what contexts do for those of this module.
package queue
