// Package semaphore is a fair counting semaphore on ZooKeeper: all processes that use the same path
// share a number of leases, and take one or several at a time.
//
//	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	exports, err := semaphore.New(m, "/limits/exports", 3) // three at a time, in all processes
//	if err != nil {
//		return err
//	}
//	return exports.Do(ctx, func(ctx context.Context) error {
//		return export(ctx) // ctx ends when the lease is lost
//	})
//
// [Semaphore.AcquireN] takes several leases at once, all or none. [WithCuratorLayout] shares the
// leases with Apache Curator's InterProcessSemaphoreV2. Package
// [github.com/turnstile-go/turnstile/zklock] says which lock is for which job.
//
// # The limit
//
// All processes must pass the same limit to [New]. The first contender writes it into the data of the
// semaphore's directory, as {"maxLeases":3,"default":true,"version":1}. A contender that was given
// another limit gets an error that matches [queue.ErrConflict], and no lease.
//
// An operator changes the limit for everybody, whatever New was given, with [Semaphore.Resize], or by
// hand by setting the data to {"maxLeases":5}. [Semaphore.Limit] returns the limit in force. A limit
// of Resize stays until the next Resize or until [Semaphore.ResetLimit]. A limit that was set by hand
// goes with the directory, which the server removes some time after the last contender has left.
//
// To change the number in the code of a fleet, first Resize to the number in force, so that both
// versions of the code use that. Then roll out the new version, and call ResetLimit from it.
//
// When the limit is lowered, no holder loses its lease, and no contender is let in until there is room
// under the new limit. A contender that waited under the higher limit creates a second node in the
// same place of the queue before it is let in, and then deletes the first. That shows the contenders
// ahead of it that it was not let in by the higher limit.
//
// If the directory has data that is not a semaphore's, the data is left as it is. Then nothing checks
// the limit, and each contender uses the one that New was given.
//
// # What is guaranteed
//
//   - At no instant do the leases held at one path add up to more than the limit that was in force when
//     the last of them was granted, whatever Resize does. A holder that is cut off from the servers
//     knows that it has lost its lease before they can let another in.
//   - First come, first served, across processes. Small requests do not overtake a large one.
//   - No lease stays idle while the first waiter could use it, whichever holder leaves first.
//   - A request for several leases gets all of them or none, so two such requests never wait for each
//     other.
//   - A cancelled call returns at once. Its place in the queue is removed in the background.
//
// # What is not guaranteed
//
//   - Do not assume that a lease is held until its release. The session can be lost at any moment, for
//     example when the network fails for longer than the session timeout.
//   - Leases are not numbered. The tokens ([queue.Lease.Token]) of two leases show which one is later,
//     but both may be held.
//   - A semaphore is not re-entrant: each Lock takes another lease.
//   - The guarantees assume what [session] assumes of clocks.
//
// # When a lease is lost
//
// The context that [Semaphore.Do] passes to its function ends, with a cause that matches
// [session.ErrLost]. So does a context of [queue.Lease.Context], and [queue.Lease.Done] is closed. Stop
// the work then: others can hold the lease by now.
//
// # Shutdown and testing
//
// [session.Manager.Close] gives up everything that is held, and makes the calls that wait return
// [session.ErrClosed]. Package [github.com/turnstile-go/turnstile/zktest] has a ZooKeeper server for
// unit tests.
package semaphore
