package zklock

// WithAsyncRelease makes Unlock return once the release is on its way to the servers. Default: Unlock waits for the
// servers' answer, for a second at most: see [Mutex.Unlock]. The option holds for the end of [Mutex.Do] and
// [Mutex.TryDo] and for the Unlock of a Locker too. Only the last Unlock of an owner releases anything. A
// [queue.Lease.Release] waits as its context says.
//
// A short Lock and Unlock then take one round trip in place of two. The ensemble has as many writes as before.
// The release is sent ahead of everything else that this process has to send and that has not left yet. So
// the next Lock of this process does not find the node of the last one. Unlock does not block, whatever the
// connection does.
//
// This is the price:
//
//   - That Unlock has returned does not mean that others can lock. They can when the servers have carried the
//     release out, usually half a round trip later. If the connection is lost, that is when this process has
//     another one, or when its session expires. Until then, a TryLock of this process can find the mutex busy
//     too.
//   - Unlock does not return what the servers say. It returns [ErrNotHeld], or why the mutex was lost before,
//     and otherwise nil. If a server refuses to delete the node, as with zk.ErrNoAuth, the log has that, and
//     the function that the Release hook of [session.Trace] has returned gets the error. The mutex stays
//     taken meanwhile.
//   - The release is certain when [session.Manager.Close] has returned nil. If Close returns an error, or a
//     program ends without Close, the mutex can be taken until the session expires.
//
// A [MultiLock] releases its locks like this if all of them have the option.
func WithAsyncRelease() Option {
	return option(func(c *config) error {
		c.async = true
		return nil
	})
}
