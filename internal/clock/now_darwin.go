package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep returns how long the machine was suspended since it started, or less. That is by how
// much CLOCK_MONOTONIC_RAW, which goes on during a suspension, is ahead of CLOCK_UPTIME_RAW,
// which stands still. It reads CLOCK_UPTIME_RAW last. So an interruption between the two readings
// makes the result too small and never too large. The next call corrects that.
func asleep() time.Duration {
	var always, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &always) != nil || unix.ClockGettime(unix.CLOCK_UPTIME_RAW, &awake) != nil {
		return 0
	}
	return time.Duration(always.Nano() - awake.Nano())
}
