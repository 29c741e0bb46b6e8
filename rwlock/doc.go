// Package rwlock is a fair read-write lock on ZooKeeper: of all processes that lock the same path, any number of readers
// or one writer hold the lock at a time. Its methods have the names of [sync.RWMutex].
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
// Package [github.com/turnstile-go/turnstile/zklock] says which lock is for which job. An RWMutex shares the lock with
// Apache Curator's InterProcessReadWriteLock at the same path.
//
// # What is guaranteed, and what is not
//
//   - At no instant do a writer's lease and another lease at one path both report that they are held. A holder that is
//     cut off from the servers knows that it has lost the lock before the servers can let another contender in.
//   - First come, first served, across processes. A reader waits for the writers that came before it, whether they hold
//     the lock or wait. So readers cannot starve a writer. A writer waits for all contenders that came before it. Readers
//     between the same two writers hold the lock together.
//   - A cancelled call returns at once. Its place in the queue is removed in the background. When a writer gives up, the
//     readers behind it are let in.
//   - Curator before 5.5 puts the read lock of a write holder at the end of the queue. When that holder gives up the
//     write lock, a writer that was already waiting, in any process, gets in beside the read lock. This package counts
//     kazoo's nodes. kazoo counts the nodes of this package only if its extra_lock_patterns say so.
//
// A lock can be lost at any moment. Package zklock says how each call shows that and what to do then, what is assumed, and
// how to shut down and to test. Its rules for goroutines, nil contexts and objects that no constructor has made hold here.
//
// # What it costs
//
// Entering the queue takes one round trip. Taking the lock over from a writer takes none.
//
// A reader watches the nearest writer ahead, and the writer before that if there is one. All readers behind one writer get
// the lock together when it leaves, without a request to a server. Readers do not wake readers. If more than two writers
// were ahead, each reader lists the directory once, when the last but one of them leaves. The next writer lists the
// directory when a writer before it leaves, since that writer may have left a read lock in its place.
package rwlock
