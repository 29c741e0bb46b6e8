package zktest

import (
	"syscall"
	"time"
)

// napAtMost is the last part of a delay, which is slept through in the kernel:
// an idle Go program wakes for a timer up to a millisecond late, which would
// double a delay of one. It takes a thread each time, so it is kept short.
const napAtMost = 1200 * time.Microsecond

// nap sleeps for d, or a little less if a signal comes.
func nap(d time.Duration) {
	if d <= 0 {
		return
	}
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil)
}
