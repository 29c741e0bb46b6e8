// Package queue makes distributed locks on ZooKeeper. Packages zklock, rwlock and semaphore
// are built on it. Use it directly to make a kind of lock that they do not have.
//
// The contenders for a lock are ephemeral sequential children of one directory. Their sequence
// numbers order them. A [Kind] names a kind of lock, and its [Policy] says when a contender may
// go. This is a mutex:
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
// The nodes ahead of a contender are those with a lower sequence number. The contender's policy
// gives each of them a weight. One rule decides for all kinds of lock:
//
//	A contender may go when the weight that remains ahead of it is at most Slack.
//	Until then it watches the last nodes ahead of it, just enough that they weigh more than Slack.
//
// No wake-up is missed: while all of the watched nodes stand, the contender may not go. So one of
// them always leaves before the contender may go.
//
// There is no herd. When a mutex is released, two waiters wake up: the next holder, and the waiter
// behind it, which then lists the directory, unless the next holder is of the same session. In general at most 1.5 × Slack + 2 waiters watch one
// node, and few of them list the directory when the node leaves.
//
// The recipe is that of the ZooKeeper documentation and of Apache Curator's LockInternals, with
// weights in place of an index.
//
// # Guarantees
//
//   - Two leases that conflict never report at the same instant that they are held. A lease ends, by
//     the clock of its session, before the server can give its place to another contender.
//   - Contenders are served in the order of their sequence numbers. A [Kind] that is Unfair has
//     no order.
//   - No node is left behind. From the moment at which a node may exist, an acquisition returns
//     a lease or the node's delete is guaranteed.
//   - Entering the queue takes one round trip. Taking the lock when the place comes free takes none:
//     no later contender can get ahead, so a contender knows all nodes ahead of it once it has listed
//     them.
//
// # What is not guaranteed
//
//   - A lease can end at any moment. Work under it must end with [Lease.Context], or do no harm
//     afterwards, or be fenced with [Lease.Guard] or [Lease.Token].
//   - If an operator deletes a holder's node, the next contender gets the lock at once. The holder
//     finds out when its server tells it. An uncontended lock does not watch its own node for the
//     first 5 ms, to save a request. If the node is deleted in that time, the holder finds out when
//     the watch is set: after 5 ms, or when it calls Token.
//
// # States
//
// An acquisition makes one attempt after another until one is granted. An attempt is one node in
// one session:
//
//	enter --> list <---------- look again ------------.
//	           |                                      |
//	           +-- too much weight ahead --> wait, with watches
//	           |                                      |
//	           '-- may go --> granted <-- may go -----'
//
//	before it is granted: error, ctx ended, busy, node or session lost --> leave
//
// When an attempt leaves, its node is deleted for certain. If its node or session was lost, a new
// attempt enters at the end of the queue.
//
// A lock can become stricter while an attempt waits, for example when the limit of a semaphore is
// lowered. Then the attempt is outdated. When it could go, a new attempt renews its place, and
// replaces its node in one transaction.
//
// An attempt for an Unfair kind creates the only node of the lock, or waits for the end of the node
// that is there.
//
// Several locks of one manager can be taken together: see Multi of package zklock. Then one transaction
// creates the nodes of all attempts, and each decides by its own listing. The attempts up to the first
// that has to wait go on as alone. The others leave before that one waits.
//
// A granted node is a turn, which one lease at a time holds. A turn has a single lease, except a
// turn of a [Local]:
//
//	granted --> held by a lease --+-- released --------------> over: the node is deleted
//	                 ^            |
//	                 |            +-- node or session lost --> over
//	                 |            |
//	                 |------------'-- released, and handed over to the next waiter of the Local
//	                 |
//	                 '-- taken again -- kept <-- released, with WithLazyRelease
//	                                     |
//	                                     '-- no longer worth keeping, or lost --> over
//
// A [Local] is the queue of one process. It has one contender for all of its waiters:
//
//	state        event                                   next state
//	idle         Acquire or TryAcquire                   trying: the caller contends by itself
//	idle         Acquire of a reader                     contending
//	contending   granted                                 holding: the first waiter holds
//	contending   failed, or all waiters have given up    idle
//	trying       granted                                 holding: the caller holds
//	trying       Acquire has to wait                     contending: the caller is the first waiter
//	trying       busy or failed                          contending if there are waiters, else idle
//	holding      released, handed over                   holding: the next waiter holds
//	holding      released, the place is kept             keeping: nobody holds
//	holding      turn over                               contending if there are waiters, else idle
//	keeping      a waiter or TryAcquire comes            holding: it holds at once, without a request
//	keeping      another contender comes, or may have    idle: the node is deleted
//	keeping      time over, or room is needed            idle: the node is deleted
//	keeping      node or session lost                    idle
//
// A place that is kept is used again only while a watch on the children is pending that was set, on this
// connection, by a listing that shows our node and no contender that has to wait for it. So contenders
// of any library end its use: see [WithLazyRelease].
//
// A nil context panics.
package queue
