// Package zklock is a fair mutex on ZooKeeper: of all processes that lock the same path, one holds the lock at a
// time, in order of arrival.
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
// [Mutex.Lock], [Mutex.TryLock] and [Mutex.Unlock] are like those of [sync.Mutex], with a context. [Mutex.Acquire]
// returns a lease, which has its own Release and a fencing token. [Mutex.Locker] is for code that takes a
// [sync.Locker].
//
// All methods of this module's locks may be called by any number of goroutines at once. They panic if the
// constructor, such as [New], has not made the lock, or if their context is nil. Package
// [github.com/turnstile-go/turnstile/queue] has what all locks share: leases, errors and contexts.
//
// # Which lock
//
//   - One holder at a time: a [Mutex].
//   - One lock for each key, such as an invoice or a user: a [Keyed].
//   - Many readers or one writer: [github.com/turnstile-go/turnstile/rwlock].
//   - At most n at a time: [github.com/turnstile-go/turnstile/semaphore].
//   - One leader of many processes: [github.com/turnstile-go/turnstile/election].
//   - Several locks, all or none: [Multi].
//   - Many goroutines of one process on one lock: [WithLocalHandover].
//   - One process that takes the same lock again and again: [WithLazyRelease].
//   - Short locks, one after the other: [WithAsyncRelease].
//   - Work that must not hang unnoticed: [context.WithTimeoutCause], as in the example of [Mutex.Do].
//   - A function that holds the lock calls another one that locks it: [queue.WithOwner].
//
// Curator's InterProcessMutex and go-zookeeper's zk.Lock at the same path are the same lock as a Mutex. A
// [queue.Kind] adds other clients.
//
// # Which type a function takes
//
// A function that works under a lock takes an interface of its own with the one method Do. Every lock of this module
// has it, and so has a fake for unit tests, as the example Fake shows:
//
//	type locker interface {
//		Do(ctx context.Context, f func(context.Context) error) error
//	}
//
// Test what needs a [queue.Lease] with a server of package [github.com/turnstile-go/turnstile/zktest].
//
// # What it costs
//
// Each holder and each waiter has a node in ZooKeeper, of which a session may own 8,192 ([session.WithNodeLimits]).
//
// # What is guaranteed, and what is not
//
//   - At no instant do the leases of two holders at one path both report that they are held. A holder that is cut off
//     from the servers knows that it has lost the lock before the servers can give the lock to another contender.
//   - First come, first served, across processes. With [WithLocalHandover] or [WithLazyRelease], goroutines that
//     share a Mutex have one place.
//   - The session can be lost at any moment, for example when the network fails for longer than the session timeout.
//
// # When the lock is lost
//
// The way to notice a loss depends on the call that took the lock:
//
//   - Do: the context of its function ends, with a cause that matches [session.ErrLost], and so does the error of Do.
//   - Acquire: [queue.Lease.Done] is closed, [queue.Lease.Err] matches session.ErrLost, and a context of
//     [queue.Lease.Context] ends.
//   - Lock and TryLock: [Mutex.Done] is closed, [Mutex.Held] reports false, and Unlock returns session.ErrLost.
//   - [Mutex.Locker]: it calls the function that was given to it.
//
// Stop the work then. To repeat it, unlock and lock again. If work that goes on for a moment longer does harm, the
// store that it writes to must refuse it. In an SQL database, claim what you write to with the fencing token
// ([queue.Lease.Token]), as the first statement of each transaction, and read behind the claim: package
// [github.com/turnstile-go/turnstile/fence] does that. Write to ZooKeeper in one transaction with
// [queue.Lease.Guard].
//
// # Shutdown
//
// First end the work: cancel its context, and wait for its goroutines. Then call [session.Manager.Close]. It releases
// all locks, even if the function of a Do is still running. Calls that wait, and holds that Close ends, report
// [session.ErrClosed]. If a process ends without Close, its locks are free when its session expires.
package zklock
