package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep returns how long the machine was suspended since it started, or less.
func asleep() time.Duration {
	return ahead(unix.CLOCK_BOOTTIME, unix.CLOCK_MONOTONIC, systemClock)
}
