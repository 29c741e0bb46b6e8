package wire

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep returns how long the machine was suspended since it started, or less: by how much
// CLOCK_BOOTTIME, which goes on meanwhile, is ahead of CLOCK_MONOTONIC, which does not. The
// second is read last, so that an interruption in between makes the answer too small and
// never too large; the next call mends that.
func asleep() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
