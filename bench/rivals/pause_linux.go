package main

import (
	"syscall"
	"time"
)

// pause sleeps in the kernel, as the other languages do: an idle Go program wakes for a
// timer up to a millisecond late.
func pause(d time.Duration) {
	if d > 0 {
		ts := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&ts, nil) // a signal may end it early
	}
}
