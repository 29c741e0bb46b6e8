package zktest

import (
	"syscall"
	"time"
)

// napAtMost is the longest part of a delay that the proxy sleeps through in the kernel: the end of
// it. An idle Go program wakes for a timer up to a millisecond late, which would double a delay of
// one millisecond. The part is short because each such sleep occupies a thread.
const napAtMost = 1200 * time.Microsecond

// nap sleeps for d, or for less if a signal arrives.
func nap(d time.Duration) {
	if d <= 0 {
		return
	}
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil)
}
