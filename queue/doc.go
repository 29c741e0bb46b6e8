// Package queue is the protocol under every lock of this module: contenders are
// ephemeral sequential children of one directory, in the order of their sequence
// numbers, and each may go when what remains ahead of it is light enough.
//
// One rule decides for all kinds of lock. Ahead of a contender are those with a lower
// sequence, and its [Policy] gives each of them a weight:
//
//	A contender may go when the weight that remains ahead of it is at most Slack.
//	While it is more, it watches the shortest tail of them that weighs more than Slack.
//
// As long as all of the watched tail stands the contender may not go, so some one of
// it leaves first: no wake-up is missed, and one release wakes at most Slack + 2 waiters,
// for a mutex the one who goes and the one who then looks who is ahead of him. The recipe
// is that of the ZooKeeper documentation and of Apache Curator's LockInternals, with
// weights in the place of an index.
//
// # What is guaranteed
//
//   - Of two leases that conflict, at no instant do both report held: a lease ends by
//     the clock of its session before the server can give its place to another.
//   - First come, first served, by sequence number, but for a [Kind] that is Unfair.
//   - From the moment a node may have been made, every way out that is not a lease
//     ends in a guaranteed delete.
//   - It takes one round trip to enter and, when the place comes free, none to take it:
//     nobody can get ahead of a contender, so those known to be ahead only leave.
//
// # What is not
//
//   - A lease can end at any moment. Work under it must end with [Lease.Context], or be
//     harmless afterwards, or be fenced with [Lease.Guard] or [Lease.Token].
//   - An operator who deletes a holder's node lets the next one in at once; the holder
//     is told as soon as its server knows. A lock that was free is watched from 5 ms on, or
//     when its token is asked for: before that, its holder is told when it is.
//
// A nil context panics.
package queue
