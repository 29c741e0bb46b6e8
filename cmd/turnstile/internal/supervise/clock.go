//go:build linux || darwin || freebsd

package supervise

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock returns the time since some moment that all processes of this machine agree on. It goes on
// while the machine is suspended, where the system has such a clock.
func clock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clockID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
