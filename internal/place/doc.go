// Package place is one lock's queue: the places of this process in it, from a request to the end of a
// lease. Package queue is its public face, and says what it promises. Package kinds has what a kind of lock
// consists of. Package hold is the process's side.
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
// Several locks of one manager can be taken together: see Multi of package zklock. Then one transaction
// creates the nodes of all attempts, and each decides by its own listing. The attempts up to the first
// that has to wait go on as alone. The others leave before that one waits.
//
// A place that is granted is that of a turn, which one lease at a time holds. A turn has a single lease, unless it
// has a sharer.
//
// # What a process shares
//
// A turn whose leases follow each other, or hold at once, has a [Sharer], which is asked what becomes of its
// place. Such turns are those of a Local of package hold, which is the layer above: owners, waiters, hand-over
// and kept places. This package knows of it only what Sharer, [Entry] and [Shown] say.
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
//	tries        tries look before they make a node, and wait for kept places
//	renew        places that a newer configuration has made outdated, with the proof
//	leave        the way out of the queue
//	turn         a place that was granted
//	guard        how a turn hears that it is lost, or asked to end
//	over         how a turn ends
//	lease        one hold of a turn
//	releasing    the release of leases, and what waits for it
//	revoked      what tells a holder that another client asks for the lock
//	parting      nodes that are deleted together
//	kept         what a sharer does with a turn
//	held         all turns of the process, session by session
//	acquire      attempts until one is granted
//	acquiring    the Acquire hook around that
//	beside       a second lease in one place, for a downgrade
//	shown        what an acquisition shows to those that share it
//	together     several locks by one transaction
//	room         room for the nodes of several locks
//	keptplaces   what new contenders do about places that are kept
//	config       the configuration of a directory
//	contender    all contenders of a lock, for users
//	line         one contender after another, for observers of elections
//	view         what a waiter knows of those ahead, and the text of that
//	why          the error of a wait
//	trace        calls hooks
//	watchtrace   calls the Watch hook
//	errors       the errors
package place
