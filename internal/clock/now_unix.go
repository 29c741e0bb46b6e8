//go:build linux || darwin

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep returns how long the machine was suspended since it started, or less.
func asleep() time.Duration { return ahead(unix.ClockGettime) }

// ahead returns by how much a clock that goes on during a suspension is ahead of one that stands still, as Go's clock does. It
// reads the one that stands still last. So an interruption between the two readings makes the result too small and never too
// large. The next call corrects that.
func ahead(read func(clock int32, to *unix.Timespec) error) time.Duration {
	var always, awake unix.Timespec
	if read(goesOn, &always) != nil || read(standsStill, &awake) != nil {
		return 0
	}
	return time.Duration(always.Nano() - awake.Nano())
}
