package zklock

// WithReadFirst makes a try look before it writes: [Mutex.TryLock], [Mutex.TryAcquire], [Mutex.TryDo], and those of a
// [MultiLock] for this one of its locks. The try lists the lock's directory first. If a contender is in its way, it says
// busy, and has created nothing. So a busy try costs the servers a read, where it costs them two writes without the option:
// that of a node, and that of its removal. It takes one round trip in place of two.
//
// If nothing is in the way, the try goes on as without the option, and takes one round trip more than without it. What it has
// read never makes it hold the lock. Lock, Acquire and Do, which wait, are as without the option.
//
// The option is for a lock that is nearly always busy when it is tried, as by many replicas of which one does the work.
//
// These are the limits:
//
//   - The answer busy may be out of date. It is true of a moment after the call began, as far as the servers know: the listing
//     goes behind a sync, so a server that lags behind catches up with its leader first. But a leader answers a sync by itself.
//     One that was cut off from the other servers notices that after syncLimit ticks (10 seconds with the settings that
//     ZooKeeper's own example has). Until then a try that is connected to it can be told that the lock is busy by a holder that
//     others have seen leave.
//   - A place that its process may only keep ([WithLazyRelease]) leaves only when it sees a new node, so if there may be
//     nothing else in the way, the try creates one, and waits as [Mutex.TryLock] says. The same is true of a node of this
//     process that is about to be deleted.
//   - While another goroutine uses this Mutex, and it has [WithLocalHandover] or [WithLazyRelease], a try says busy without any
//     request, as it does without the option. If this process keeps the place, the try takes it, without any request too.
//   - A MultiLock reads all of its locks that are taken by one transaction together, before it creates a node. Others are read in
//     their turn, when it holds those before them.
//
// Default: a try creates a node, and removes it if it is not the first.
func WithReadFirst() Option {
	return option(func(c *config) error {
		c.request.OwnTerms().ReadFirst = true
		return nil
	})
}
