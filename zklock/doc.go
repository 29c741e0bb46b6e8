// Package zklock is a fair mutex on ZooKeeper for any number of processes, shared with
// Apache Curator's InterProcessMutex and the lock of go-zookeeper at the same path.
//
//	m, err := session.Connect(ctx, "h1:2181,h2:2181,h3:2181")
//	…
//	lock, err := zklock.New(m, "/locks/invoice-42")
//	…
//	err = lock.Do(ctx, func(ctx context.Context) error {
//		return work(ctx) // ctx ends when the lock is lost
//	})
//
// # What is guaranteed
//
//   - Of any number of holders' leases at one path, at no instant do two report held. A
//     holder that is cut off knows before anybody else can be let in.
//   - First come, first served, across processes, but for [WithUnfair], and turn by turn
//     among processes with [WithLocalHandover].
//   - A call that is cancelled returns at once, and leaves nothing behind in the end.
//
// # What is not
//
//   - A lock is not safe to assume held until Unlock: the session can be lost at any
//     moment. Do and [queue.Lease.Context] end the work's context then. Between that
//     moment and the end of the work others can be in; where that must do no harm, have
//     what is written to compare fencing tokens ([queue.Lease.Token]), or write with
//     [queue.Lease.Guard].
//   - It assumes what [session] assumes of clocks.
package zklock
