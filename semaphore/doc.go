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
// All must give the same. It is kept as the data of the semaphore's directory, for example
// {"maxLeases":3}, by whoever comes first; one who gives another is told so by an error that
// matches [queue.ErrConflict], and gets no lease. [Semaphore.Resize] changes it for
// everybody, until the directory is gone.
//
// A directory with data that is somebody else's is left as it is. Then nothing is checked,
// and each goes by the limit that he was given.
//
// # What is guaranteed
//
//   - At no instant do the leases that are held at one path add up to more than the limit
//     by which the last of them was granted. A holder that is cut off knows before anybody
//     else can be let in.
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
