package wire

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep returns how long the machine was suspended since it started, or less: by how much
// CLOCK_MONOTONIC_RAW, which goes on meanwhile, is ahead of CLOCK_UPTIME_RAW, which does
// not. The second is read last, so that an interruption in between makes the answer too
// small and never too large; the next call mends that.
func asleep() time.Duration {
	var always, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &always) != nil || unix.ClockGettime(unix.CLOCK_UPTIME_RAW, &awake) != nil {
		return 0
	}
	return time.Duration(always.Nano() - awake.Nano())
}
