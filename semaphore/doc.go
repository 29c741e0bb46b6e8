// Package semaphore is a fair counting semaphore on ZooKeeper for any number of processes:
// so many leases, to be taken one or several at a time.
//
//	m, err := session.Connect(ctx, "h1:2181,h2:2181,h3:2181")
//	…
//	sem, err := semaphore.New(m, "/limits/exports", 3) // three at a time, everywhere
//	…
//	err = sem.Do(ctx, func(ctx context.Context) error {
//		return export(ctx) // ctx ends when the lease is lost
//	})
//
// [Semaphore.AcquireN] takes several leases at once, all or none. [WithCuratorLayout] shares
// the leases with Apache Curator's InterProcessSemaphoreV2.
//
// # The limit
//
// All processes must give [New] the same limit. The first contender writes it into the data of
// the semaphore's directory, as {"maxLeases":3,"default":true,"version":1}; one that was given another gets
// an error that matches [queue.ErrConflict], and no lease.
//
// An operator changes the limit for everybody, whatever New was given, with [Semaphore.Resize],
// or by hand, by setting the data to {"maxLeases":5}. What Resize has set stays until it is
// changed or taken back with [Semaphore.ResetLimit]; what was set by hand goes with the
// directory, which the server removes some time after the last contender has left it.
// [Semaphore.Limit] tells what is in force.
//
// To change the number in the code of a fleet, have an operator Resize to the number that is in
// force, so that both versions of the code go by it; roll the new version out; and ResetLimit
// from the new version.
//
// When the limit is lowered, nobody who holds a lease loses it, and nobody comes in until
// there is room by the new one. A contender that waited under the higher limit makes a second
// node in the same place of the queue before it comes in, and removes the first: that tells
// those ahead of it that it has not come in by the higher limit.
//
// A directory with data that is somebody else's is left as it is. Then nothing is checked,
// and each contender goes by the limit that New was given.
//
// # What is guaranteed
//
//   - At no instant do the leases that are held at one path add up to more than the limit
//     that was in force when the last of them was granted, whatever Resize does. A holder
//     that is cut off knows before anybody else can be let in.
//   - First come, first served, across processes. A large request is not overtaken by the
//     small ones behind it.
//   - No lease is idle while the first of those who wait could use it, whichever holder
//     leaves first.
//   - Who asks for several gets them all or none, so that two who do never wait for each
//     other.
//   - A call that is cancelled returns at once, and leaves nothing behind in the end.
//
// # What is not
//
//   - A lease is not safe to assume held until its release: see the same in package zklock.
//   - Leases are not numbered. [queue.Lease.Token] tells the later of two apart from the
//     earlier, but both may be held.
//   - It is not re-entrant: each Lock takes another lease.
//   - It assumes what [session] assumes of clocks.
package semaphore
