// Package rwlock is a fair read-write lock on ZooKeeper for any number of processes, with
// the methods of [sync.RWMutex], shared with Apache Curator's
// InterProcessReadWriteLock at the same path.
//
//	m, err := session.Connect(ctx, "h1:2181,h2:2181,h3:2181")
//	…
//	lock, err := rwlock.New(m, "/locks/prices")
//	…
//	err = lock.RDo(ctx, func(ctx context.Context) error {
//		return read(ctx) // beside other readers; ctx ends when the lock is lost
//	})
//	err = lock.Do(ctx, func(ctx context.Context) error {
//		return write(ctx) // alone
//	})
//
// # What is guaranteed
//
//   - Of a writer's lease and any other at one path, at no instant do both report held. A
//     holder that is cut off knows before anybody else can be let in.
//   - First come, first served, across processes: a reader waits for the writers that came
//     before it, also for those who still wait, so that readers cannot starve a writer; a
//     writer waits for all. Readers between the same two writers are inside together.
//   - A call that is cancelled returns at once, and leaves nothing behind in the end: a
//     writer that gives up lets in the readers behind it.
//   - An owner ([WithOwner]) enters again what it holds, takes the read lock while it has
//     the write lock, and may then drop that one with no writer in between.
//
// # What is not
//
//   - A lock is not safe to assume held until Unlock: the session can be lost at any
//     moment. Do, RDo and [queue.Lease.Context] end the work's context then. Between that
//     moment and the end of the work others can be in; where that must do no harm, have
//     what is written to compare fencing tokens ([queue.Lease.Token]), or write with
//     [queue.Lease.Guard].
//   - A read lock does not become a write lock: see [ErrUpgrade].
//   - Curator before 5.5 gives the read lock of a write holder a place at the end of the
//     queue, so that a writer already waiting, whoever's it is, comes in beside it. kazoo's
//     nodes count here, but kazoo counts ours only if its extra_lock_patterns say so.
//   - It assumes what [session] assumes of clocks.
//
// # What it costs
//
// To enter takes one round trip, and to come in behind a writer none: a reader watches the
// nearest writer before it, and the one before that while there is one, and goes when the
// last of them leaves. Readers do not wake readers. All behind one writer watch its node, and
// come in together without asking the server anything; where more than two writers were in
// front, each has listed the directory once before, when the last but one left. A writer
// that is next lists it when a writer before it leaves, since that one may have left a read
// lock in its place.
package rwlock
