//go:build linux || darwin

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// ahead returns how long the machine was suspended since it started, or less. That is by how much a
// clock that goes on during a suspension is ahead of one that stands still, as Go's clock does. It
// reads the one that stands still last. So an interruption between the two readings makes the result
// too small and never too large. The next call corrects that.
func ahead(goesOn, standsStill int32, read func(clock int32) (time.Duration, error)) time.Duration {
	always, err := read(goesOn)
	if err != nil {
		return 0
	}
	awake, err := read(standsStill)
	if err != nil {
		return 0
	}
	return always - awake
}

func systemClock(clock int32) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err
}
