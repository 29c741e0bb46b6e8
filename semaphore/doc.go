// Package semaphore is a fair counting semaphore on ZooKeeper: all processes that use the same path share a number of
// leases, and take one or several at a time. A [queue.Lease] is one hold, of one or more of these.
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
// Package [github.com/turnstile-go/turnstile/zklock] says which lock is for which job, what to do after a loss, how to
// shut down and to test, and what goroutines may do. All of that holds here.
//
// # The limit
//
// All processes must pass the same limit to [New]. The first contender writes it into the data of the semaphore's
// directory, as {"maxLeases":3,"default":true,"version":1}. Data that is not a semaphore's is left as it is: then each
// contender uses the limit that New was given.
//
// [Semaphore.Resize] changes the limit for everybody, whatever New was given. To lower it, Resize first acquires the
// leases that are to go. So no holder loses its lease, and once the lower limit is in force no more leases are held.
// Do not set the data by hand: a limit that is lowered by hand can be exceeded.
//
// To change the limit in the code of many processes, which get the new version one by one:
//
//  1. Call [Semaphore.Resize] with the number in force. Now it counts for both versions, whatever they pass to New.
//  2. Replace all processes by the new version. To put the new number into force before that, call Resize again.
//  3. Call [Semaphore.ResetLimit] from a process of the new version. Now the limit is the number that it has passed
//     to New, and requests of the old version fail with [queue.ErrConflict].
//
// # What is guaranteed, and what is not
//
//   - At no instant do the leases held at one path add up to more than the limit that was in force when the last of
//     them was granted, whatever Resize does.
//   - First come, first served, across processes. Small requests do not overtake a large one. A request for several
//     leases gets all of them or none. No lease stays idle while the first waiter could use it.
//   - The tokens ([queue.Lease.Token]) of two leases show which one is later, but both may be held.
package semaphore
