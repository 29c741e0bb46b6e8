// Package zklock is a fair mutex on ZooKeeper: of all processes that lock the same path, one holds
// the lock at a time, in order of arrival.
//
//	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	lock, err := zklock.New(m, "/locks/invoice-42")
//	if err != nil {
//		return err
//	}
//	return lock.Do(ctx, func(ctx context.Context) error {
//		return charge(ctx, 42) // ctx ends when the lock is lost
//	})
//
// [Mutex.Lock], [Mutex.TryLock] and [Mutex.Unlock] are like those of [sync.Mutex], with a context.
// [Mutex.Acquire] returns a lease, which has its own Release and a fencing token. [Mutex.Locker] is
// for code that takes a [sync.Locker].
//
// # Which lock
//
//   - One holder at a time: a [Mutex].
//   - Many readers or one writer: [github.com/turnstile-go/turnstile/rwlock].
//   - At most n at a time: [github.com/turnstile-go/turnstile/semaphore].
//   - Several locks, all or none: [Multi], which takes locks of all three packages.
//   - Many goroutines of one process on one lock: [WithLocalHandover].
//   - A function that holds the lock calls one that locks it: [WithOwner].
//
// A Mutex shares the lock with Curator's InterProcessMutex and with zk.Lock of go-zookeeper at the
// same path, and with others by [WithPrefixes].
//
// # What is guaranteed
//
//   - At no instant do the leases of two holders at one path both report held. A holder that is cut
//     off from the servers knows that it has lost the lock before they can let another in.
//   - First come, first served, across processes. Two options change that: [WithUnfair] and
//     [WithLocalHandover].
//   - A cancelled call returns at once. Its place in the queue is removed in the background.
//
// # What is not guaranteed
//
//   - Do not assume that the lock is held until Unlock. The session can be lost at any moment, for
//     example when the network fails for longer than the session timeout.
//   - The lock cannot stop work that goes on after a loss. Others can hold the lock by then.
//   - An operator who deletes the holder's node lets the next contender in at once. The holder learns
//     of it a moment later.
//   - The guarantees assume what [session] assumes of clocks.
//
// # When the lock is lost
//
// The context that [Mutex.Do] passes to its function ends, with a cause that matches
// [session.ErrLost]. So does a context of [queue.Lease.Context]. [queue.Lease.Done] and [Mutex.Done]
// are closed, [Mutex.Held] reports false, and Unlock and Do return an error that matches
// session.ErrLost. A sync.Locker calls the function of [OnLost]. Held and Done of a Mutex tell of Lock,
// TryLock and Do, and not of the leases of Acquire.
//
// Stop the work then. To repeat it, unlock and lock again. Where work that goes on for a moment longer does
// harm, let the store that it writes to refuse it. Write the fencing token ([queue.Lease.Token]) with
// the data and refuse lower tokens, or write to ZooKeeper in one transaction with
// [queue.Lease.Guard]. Inside Do, [queue.LeaseFrom] returns the lease.
//
// # Shutdown
//
// [session.Manager.Close] gives up everything that is held, and makes the calls that wait return an
// error that matches [session.ErrClosed]. A hold that Close ends reports that error too, and not
// session.ErrLost. The next contenders take over at once, even if a function of Do still runs. So end
// the work first: cancel its context, wait for its goroutines, and then call Close. If a process
// ends without Close, the servers let the next contenders in when they expire its session.
//
// # Testing
//
// Package [github.com/turnstile-go/turnstile/zktest] has a ZooKeeper server for unit tests. It runs
// in the process, and can expire a session or lose a reply at a chosen moment.
package zklock
