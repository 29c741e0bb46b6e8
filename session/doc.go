// Package session keeps one live ZooKeeper session, and knows by itself when
// that session can no longer be trusted.
//
// A [Manager] lives as long as the process and owns the connection. It hands
// out a [Session], which is exactly one ZooKeeper session: when that is lost it
// is lost for good, with everything held under it, and the manager opens
// another.
//
// # What is guaranteed
//
//   - A session reports itself lost before the ensemble can have expired it. A leader hears
//     of the clients of other servers only twice a tick. So the session does not count its
//     timeout from the last request that was answered, but from an earlier one, of which the
//     leader has certainly heard. While the session owns nodes, only writes that a quorum has
//     agreed to prove that, since a server that has lost touch with the others answers
//     everything else by itself. The derivation stands in the source, beside the clock.
//   - [Session.Err] and [Session.Remaining] read the clock when they are called. So the first
//     answer after a long pause of the process is right.
//   - A lost session never comes back, even when its connection does. It is
//     closed on the server in the background, so that nothing of it stays.
//   - Requests are bound by their context. A cancelled call returns at once.
//
// # What is not
//
//   - The lease clock assumes that this machine's clock runs at the rate of the
//     leader's, to within the margin. Time that the machine was suspended counts on Linux and
//     macOS. On other systems, and in a virtual machine that its host stops without telling
//     it, a holder may believe in its lock for too long. Writes to other systems that must
//     never come from a former holder need a fencing token.
//   - The clock assumes that minSessionTimeout is two ticks or more, as it is by default.
//     Otherwise [WithTickTime] has to say how long a tick is. Where the tick is known, say it
//     in any case: until a manager has learned the tick, a session is certain for less time.
//   - Do not change tickTime, minSessionTimeout or maxSessionTimeout under running clients. A
//     manager learns the tick only once. A server can come back with a lower limit on session
//     timeouts, and the greeting that says so can be lost.
//   - With TLS between servers, the leader's pinging thread can hang unless
//     leader.closeSocketAsync is set. Observers behind observer masters are not supported.
//   - The ensemble may keep an expired node longer than the timeout. The clock
//     is a lower bound, not a prediction.
//   - An operator who deletes nodes or expires sessions by hand is reported as
//     soon as the server says so, and no sooner.
//
// A Manager, its sessions and everything they return may be used by any number
// of goroutines at once. A nil context panics.
package session
