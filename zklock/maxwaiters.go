package zklock

// WithMaxWaiters keeps [Mutex.Lock], [Mutex.Acquire] and [Mutex.Do] from entering a long queue: if more than n contenders are
// ahead, they return at once an error that matches [queue.ErrBusy], and leave nothing behind. A [queue.WaitError] in it says
// how many there are, and names one of them. The holder counts as one. So with n = 0 a call waits for nobody, with n = 1 it
// waits only if it is the next, and with n = 10 the holder has at most ten contenders behind it, all of them with this option.
//
// The option is for services that would rather refuse work than queue it.
//
// The number is that of the moment of entry: of the contenders of all processes that are ahead of the call's own node. So a call
// that is refused costs two writes, that of its node and that of its removal, and a contender that is being refused, or is about
// to leave, counts as long as its node is there. Once a call has been let in, it waits for as long as its context allows. It is
// not refused any more, also if its session is lost and it goes on at the end of the queue.
//
// With [WithLocalHandover] or [WithLazyRelease], the goroutines that hold or wait for this Mutex count too, and a call that
// finds too many is refused without a request. Of the contenders ahead of the place that they share, one or two count, which
// this process watches. If that place itself is behind too many when it enters the queue, all goroutines that have come until
// then are refused.
//
// A hold that this Mutex has lost is no contender any more, and does not count: calls wait for its Unlock, as those of
// [Mutex.Lock] do.
//
// A place that a process may only keep ([WithLazyRelease]) does not count while nobody is known to want the mutex. If its
// process uses the mutex after all, the call waits for that.
//
// A [MultiLock] is refused if one of its locks is, also when it starts over because it has lost one that it had. The
// [Mutex.Locker] tries again, as after every error. TryLock waits for no contender anyway. n must be 0 or more.
// Default: a queue can be of any length.
func WithMaxWaiters(n int) Option {
	return option(func(c *config) error { return c.request.SetMaxWaiters(n) })
}
