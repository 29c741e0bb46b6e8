package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep returns how long the machine was suspended since it started, or less. That is by how
// much CLOCK_BOOTTIME, which goes on during a suspension, is ahead of CLOCK_MONOTONIC, which
// stands still. It reads CLOCK_MONOTONIC last. So an interruption between the two readings makes
// the result too small and never too large. The next call corrects that.
func asleep() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
