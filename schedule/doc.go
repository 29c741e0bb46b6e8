// Package schedule runs a job once at each tick of a schedule, on one of many replicas. Each replica has the
// same schedule, and calls [Job.Run] at each tick:
//
//	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	job, err := schedule.New(m, "/jobs/report")
//	if err != nil {
//		return err
//	}
//	// In each replica, once an hour:
//	tick := time.Now().Truncate(time.Hour) // the same in all replicas
//	_, err = job.Run(ctx, tick, func(ctx context.Context) error {
//		return report(ctx, tick) // in one of them
//	})
//	return err
//
// A job is a [zklock.Mutex] and a record beside it, a node on the servers. The record has the latest tick
// that was begun, how often, and whether it is done. The replica that holds the lock writes it before the
// function and after it. It does so in a transaction that fails if the replica has lost the lock, whether it
// knows that or not. There is no lease time to choose: a job may take as long as it takes, and the lock of a
// replica that dies is free after the session timeout.
//
// # At least once, at most once
//
// A replica can die in the middle of a job, and then nobody can tell how far it came.
//
//   - By default the tick is tried again until a function has returned nil: at least once. The replicas that
//     wait in Run take over. So the job must do no harm when it is repeated.
//   - With [WithMaxTries] of 1 it is not tried again: at most once. So a job can be done in part, or not at all.
//   - With WithMaxTries of more it is tried again a few times. That also ends a job that kills each replica on
//     which it runs.
//
// If no replica fails or loses its session, each of them runs a job exactly once.
//
// # Ticks
//
// A tick is a name, and not the time at which the job runs. Run compares it with the record, and asks no
// clock. Later ticks replace earlier ones: once a tick has begun, all before it are over, also those that
// nobody has run. So:
//
//   - All replicas must give a tick the same name. Take the time on the schedule, which libraries for cron
//     can tell, or truncate the present time by the interval, as above. A timer that fires too early, by
//     another clock than the one that is truncated, gives the tick before.
//   - The clocks of the replicas should differ by less than the time between two ticks. A replica that is
//     ahead by more begins a tick before the others have come to the one before it, and that one is left out.
//     A clock that is a year ahead leaves a year out: delete the record then.
//   - A tick that lies more than a minute ahead by the clock of its own process is an error, and so is one that is no
//     whole number of milliseconds, such as time.Now().
//   - A replica that is late does nothing, and finds that out by one read. The [Outcome] says so.
//   - Run does not make up for ticks that were missed because no replica ran. [Job.CatchUp] does.
//
// # What is guaranteed
//
//   - With WithMaxTries of n, no more than n functions are called for a tick. With 1, no function is called for
//     a tick for which another one was called before.
//   - No function is called for a tick that is done, or that is earlier than one that has begun.
//   - At no instant are the contexts of two functions of one job both alive.
//   - A tick whose function did not return nil stays open by default, until one has or a later tick has
//     begun.
//   - Nothing grows with the number of ticks: the record is one small node.
//
// # What is not guaranteed
//
//   - That a tick is run at all, if no replica calls Run for it, or if all calls end before the job is done.
//   - That a job ends when its lock is lost. Its context ends. If it goes on, another replica can run the job
//     at the same time. If that does harm, let the store refuse the writes of former holders:
//     [queue.LeaseFrom] returns the lease from the context, for its fencing token, and package
//     [github.com/turnstile-go/turnstile/fence] has the rest.
//   - That a job is recorded which is done: the replica can die between the two. By default another one
//     repeats it then.
//   - Which replica runs a job.
//   - Operators can delete the record. Then the next tick that is given to Run is open, whichever it is.
//   - The guarantees assume what [session] assumes of clocks. The time of day does not matter to them.
//
// # Shutdown
//
// Cancel the context of Run, wait until Run has returned, and then call [session.Manager.Close].
//
// # Testing
//
// Package [github.com/turnstile-go/turnstile/zktest] has a ZooKeeper server for unit tests, which runs in the
// process.
package schedule
