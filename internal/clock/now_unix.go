//go:build linux || darwin

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

func asleep() time.Duration { return ahead(unix.ClockGettime) }

// ahead returns by how much a clock that goes on during a suspension is ahead of one that stands still, as Go's does.
// It reads that one last, so an interruption in between makes the result too small and never too large.
func ahead(read func(clock int32, to *unix.Timespec) error) time.Duration {
	var always, awake unix.Timespec
	if read(goesOn, &always) != nil || read(standsStill, &awake) != nil {
		return 0
	}
	return time.Duration(always.Nano() - awake.Nano())
}
