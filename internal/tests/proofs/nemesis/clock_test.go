//go:build linux

package nemesis

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is the time in nanoseconds by the clock that all processes of this machine share,
// Java's System.nanoTime among them.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

func since(t int64) time.Duration { return time.Duration(now() - t) }
