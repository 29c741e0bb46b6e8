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
// No wake-up is missed: while the whole watched tail stands, the contender may not go, so a
// watched node always leaves first. There is no herd: for a mutex, a release wakes the next holder
// and the waiter behind it, which then lists the directory. In general at most 1.5 × Slack + 2
// waiters watch one node; few of them list when it leaves. The recipe is that of the ZooKeeper
// documentation and of Apache Curator's LockInternals, with weights in place of an index.
//
// # Guarantees
//
//   - Two leases that conflict never report at the same instant that they are held. A lease ends
//     by the clock of its session before the server can give its place to another contender.
//   - Contenders are served in the order of their sequence numbers. A [Kind] that is Unfair has
//     no order.
//   - No node is left behind. From the moment at which a node may exist, an acquisition returns
//     a lease or the node's delete is guaranteed.
//   - It takes one round trip to enter, and none to take the lock when the place comes free.
//     No later contender can get ahead, so the nodes that are known to be ahead only leave.
//
// # What is not guaranteed
//
//   - A lease can end at any moment. Work under it must end with [Lease.Context], or be harmless
//     afterwards, or be fenced with [Lease.Guard] or [Lease.Token].
//   - If an operator deletes a holder's node, the next contender goes at once. The holder finds
//     out when its server tells it. An uncontended lock does not watch its own node for the first
//     5 ms, to save a request. If the node is deleted in that time, the holder finds out when
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
// An attempt that leaves has its node deleted for certain. If its node or session was lost, a new
// attempt enters at the end of the queue. If the lock was made stricter while an attempt waited
// (a lower limit of a semaphore), the attempt is outdated: when it could go, a new attempt renews
// its place, and replaces its node in one transaction. An attempt for an Unfair kind creates the
// only node of the lock, or waits for the end of the node that is there.
//
// A granted node is a turn, which one lease at a time holds. A turn has a single lease, except a
// turn of a [Local]:
//
//	granted --> held by a lease --+-- released --------------> over: the node is deleted
//	                 ^            |
//	                 |            +-- node or session lost --> over
//	                 |            |
//	                 '------------'-- released, and handed over to the next waiter of the Local
//
// A [Local] is the queue of one process. It has one contender for all of its waiters:
//
//	state        event                                   next state
//	idle         a waiter comes                          contending
//	idle         TryAcquire                              trying
//	contending   granted                                 holding: the first waiter holds
//	contending   failed, or all waiters have given up    idle
//	trying       granted                                 holding: the caller of TryAcquire holds
//	trying       busy or failed                          contending if there are waiters, else idle
//	holding      released, handed over                   holding: the next waiter holds
//	holding      turn over                               contending if there are waiters, else idle
//
// A nil context panics.
package queue
