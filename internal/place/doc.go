// Package place is one lock's queue: the contenders of this process in it, from a request to the end of a
// lease. Package queue is its public face, and says what it promises. Package kinds has what a kind of lock
// consists of. The lock packages call this package directly.
//
// The protocol is one node for each contender, and one rule that decides by the nodes ahead: see package
// queue.
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
// An attempt for an Unfair kind leaves if it has to wait. The next one enters when the holder is gone.
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
//	holding      released after use, the place is kept   keeping: nobody holds
//	holding      turn over                               contending if there are waiters, else idle
//	keeping      a waiter or TryAcquire comes            holding: it holds at once, without a request
//	keeping      another contender comes, or may have    idle: the node is deleted
//	keeping      time over, or room is needed            idle: the node is deleted
//	keeping      node or session lost                    idle
//
// A place that is kept is used again only while a watch on the children is pending that was set, on this
// connection, by a listing that shows our node and no contender that has to wait for it. So contenders
// of any library end its use: see [WithLazyRelease].
package place
