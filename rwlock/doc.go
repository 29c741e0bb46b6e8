// Package rwlock is a fair read-write lock on ZooKeeper: of all processes that lock the same path, any number of
// readers or one writer hold the lock at a time.
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
//	return lock.Reader().Do(ctx, func(ctx context.Context) error { // lock.Do is for writers
//		return readPrices(ctx) // ctx ends when the lock is lost
//	})
//
// Package [github.com/turnstile-go/turnstile/zklock] says which lock is for which job, what to do after a loss, how to
// shut down and to test, and what goroutines may do. All of that holds here. An RWMutex shares the lock with Apache
// Curator's InterProcessReadWriteLock at the same path.
//
// # What is guaranteed, and what is not
//
//   - At no instant do a writer's lease and another lease at one path both report that they are held.
//   - First come, first served, across processes. A reader waits for the writers that came before it, so readers
//     cannot starve a writer. When a writer gives up, the readers behind it are let in.
//   - Curator before 5.5 puts the read lock of a write holder at the end of the queue. When that holder gives up the
//     write lock, a writer that was already waiting gets in beside the read lock. This package counts kazoo's nodes.
//     kazoo counts the nodes of this package only if its extra_lock_patterns say so.
//
// # What it costs
//
// Entering the queue takes one round trip. All readers behind one writer get the lock together when it leaves, without
// a request, and readers do not wake readers. The next writer lists the directory when a writer before it leaves,
// which may have left a read lock in its place.
package rwlock
