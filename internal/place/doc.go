// Package place is one lock's queue: the places of this process in it, from a request to the end of a
// lease. Package queue is its public face, and says what it promises. Package kinds has what a kind of lock
// consists of. The lock packages call this package directly.
//
// The protocol is one node for each contender, and one rule that decides by the nodes ahead: see package
// queue. Package decide has the rule, and the states of a place with all that can happen to it. This package does what
// decide returns: it sends requests, sets watches, calls hooks, and tells decide what has come of that.
//
// # From a request to a lease
//
// An acquisition makes one attempt after another until one is granted. An attempt takes a place up to the grant, or
// out of the queue. When it leaves, its node is deleted for certain. If its node or session was lost, a new
// attempt enters at the end of the queue.
//
// A lock can become stricter while an attempt waits, for example when the limit of a semaphore is
// lowered. Then its place is outdated. When it could go, a new attempt replaces its node in one transaction.
//
// An attempt for an unfair kind leaves if it has to wait. The next one enters when the holder is gone.
//
// Several locks of one manager can be taken together: see Multi of package zklock. Then one transaction
// creates the nodes of all attempts, and each decides by its own listing. The attempts up to the first
// that has to wait go on as alone. The others leave before that one waits.
//
// A place that is granted is that of a turn, which one lease at a time holds. A turn has a single lease, except a
// turn of a [Local].
//
// # Places that a process shares
//
// A [Local] is the queue of one process. At most one place is open to its goroutines: one that a single goroutine contends
// for, one that a shared contender contends for, or that of a turn, which is held or kept. A goroutine that comes is admitted
// so:
//
//	no place is open        it contends by itself; readers have a shared contender
//	one contends by itself  it waits; if that has to wait for others too, it becomes the shared contender of both
//	a shared contender      it waits with the others
//	a turn that is held     it waits until the lock is handed over to it; a reader holds at once
//	a turn that is kept     it holds at once, without a request
//
// When the turn is over, those that still wait get a shared contender. The place of readers is closed to further ones as soon
// as another contender may have come: then the next reader has a place of its own.
//
// A place that is kept is used again only while a watch on the children is pending that was set, on this
// connection, by a listing that shows our node and no contender that has to wait for it. So contenders
// of any library end its use: see [WithLazyRelease].
//
// # Files
//
//	queue        a directory, and what an acquisition asks for
//	name         which names a lock can have in metrics and spans
//	place        one node, and its state
//	attempt      a place up to its grant: what it knows
//	run          the loop of an attempt
//	enter, seek  creates nodes; finds them after a lost reply
//	survey       lists, and has the listing judged
//	watch, wait  sets watches; waits for what they tell
//	look         what the watches say
//	readfirst    tries that look before they make a node
//	maxwaiters   calls that enter no long queue
//	renew        places that a newer configuration has made outdated, with the proof
//	leave        the way out of the queue
//	turn         a place that was granted
//	guard        how a turn hears that it is lost, or asked to end
//	over         how a turn ends
//	lease        one hold of a turn
//	maxhold      holds that last for too long
//	releasing    the release of leases, and what waits for it
//	parting      nodes that are deleted together
//	held         all turns of the process, session by session
//	acquire      attempts until one is granted
//	acquiring    the Acquire hook around that
//	unfair       locks without a queue
//	beside       a second lease in one place, for a downgrade
//	together     several locks by one transaction
//	room         room for the nodes of several locks
//	local        the queue of one process: what it has open
//	localacquire an acquisition by way of it
//	localstate   its waiters and its shared contender
//	localkept    releases: handed over, kept or over
//	localreaders readers that share a place
//	localunused  whether a Local can be forgotten
//	localwhy     why one of its waiters waits
//	keep         whether a place that is kept may be used: the invariant
//	habit        whether the next place is worth keeping
//	ahead        who is ahead of one of ours, for elections
//	keptplaces   what new contenders do about places that are kept
//	config       the configuration of a directory
//	contender    all contenders of a lock, for users
//	line         one contender after another, for observers of elections
//	lock         what a lock package has of a queue, and the door of Multi to it
//	view         what a waiter knows of those ahead, and the text of that
//	why          the error of a wait
//	trace        calls hooks
//	watchtrace   calls the Watch hook
//	errors       the errors
package place
