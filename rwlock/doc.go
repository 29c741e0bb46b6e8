// Package rwlock is a fair read-write lock on ZooKeeper: of all processes that lock the same path,
// any number of readers or one writer hold the lock at a time. Its methods have the names of
// [sync.RWMutex].
//
//	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	lock, err := rwlock.New(m, "/locks/prices")
//	if err != nil {
//		return err
//	}
//	return lock.RDo(ctx, func(ctx context.Context) error { // Do is for writers
//		return readPrices(ctx) // ctx ends when the lock is lost
//	})
//
// Package [github.com/turnstile-go/turnstile/zklock] says which lock is for which job. An RWMutex
// shares the lock with Apache Curator's InterProcessReadWriteLock at the same path.
//
// # What is guaranteed
//
//   - At no instant do a writer's lease and another lease at one path both report held. A holder
//     that is cut off from the servers knows that it has lost the lock before they can let another
//     in.
//   - First come, first served, across processes. A reader waits for the writers that came before
//     it, held or waiting, so readers cannot starve a writer. A writer waits for all contenders that
//     came before it. Readers between the same two writers hold the lock together.
//   - A cancelled call returns at once. Its place in the queue is removed in the background. When a
//     writer gives up, the readers behind it are let in.
//   - An owner ([WithOwner]) enters again what it holds. It gets the read lock while it has the write
//     lock, and can then give up the write lock with no writer in between.
//
// # What is not guaranteed
//
//   - Do not assume that the lock is held until Unlock. The session can be lost at any moment, for
//     example when the network fails for longer than the session timeout.
//   - The lock cannot stop work that goes on after a loss. Others can hold the lock by then.
//   - A read lock does not become a write lock: see [ErrUpgrade].
//   - Curator before 5.5 puts the read lock of a write holder at the end of the queue. So a writer that
//     waits already, of any process, gets in beside that read lock. kazoo's nodes count here, but kazoo
//     counts the nodes of this package only if its extra_lock_patterns say so.
//   - The guarantees assume what [session] assumes of clocks.
//
// # When the lock is lost
//
// The context that [RWMutex.Do] or [RWMutex.RDo] passes to its function ends, with a cause that
// matches [session.ErrLost]. [RWMutex.Done], [RWMutex.Held] and the error of Unlock show the loss too,
// and RDone, RHeld and RUnlock that of a read lock. What to do then is in package zklock: stop the
// work, and have the store refuse writes of a former holder by the token or the guard of the lease.
//
// # Shutdown and testing
//
// [session.Manager.Close] gives up everything that is held, and makes the calls that wait return
// [session.ErrClosed]. Package [github.com/turnstile-go/turnstile/zktest] has a ZooKeeper server for
// unit tests.
//
// # What it costs
//
// To enter takes one round trip, and to take the lock over from a writer none. A reader watches the
// nearest writer ahead, and the writer before that if there is one. It holds the lock when the last of
// them leaves. Readers do not wake readers. All readers behind one writer watch its node, and get the
// lock together without a request to a server. If more than two writers were ahead, each reader has
// listed the directory once before that, when the last but one left. The next writer lists the
// directory when a writer before it leaves, since that writer may have left a read lock in its place.
package rwlock
