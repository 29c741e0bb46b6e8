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
//   - A session reports itself lost before the ensemble can have expired it. The send
//     time of every request is kept until its answer; the session is certain until the
//     send time of the last answer that counts, plus the negotiated timeout, minus a
//     margin. While it owns nodes, what counts is what a quorum has agreed to, not what
//     one server may say that has lost touch with the others. [Session.Err] and
//     [Session.Remaining] compute this when asked, so the first answer after a long
//     pause of the process is already right.
//   - A lost session never comes back, even when its connection does. It is
//     closed on the server in the background, so that nothing of it stays.
//   - A guaranteed delete ([Session.Remove], [Session.Sweep]) is retried across
//     reconnects until the server says that the node is gone, or the session is.
//   - Requests are bound by their context. A cancelled call returns at once.
//
// # What is not
//
//   - The lease clock assumes that this machine's clock runs at the rate of the
//     server's, to within the margin, and that it runs at all: a suspended
//     virtual machine stops it. Writes to other systems that must never come
//     from a former holder need a fencing token.
//   - A server can come back with a lower limit on session timeouts, and the greeting that
//     says so can be lost. Do not lower tickTime or maxSessionTimeout under running clients.
//   - The ensemble may keep an expired node longer than the timeout. The clock
//     is a lower bound, not a prediction.
//   - An operator who deletes nodes or expires sessions by hand is reported as
//     soon as the server says so, and no sooner.
//
// A Manager, its sessions and everything they return may be used by any number
// of goroutines at once.
package session
