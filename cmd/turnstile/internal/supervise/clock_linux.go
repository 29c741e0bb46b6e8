package supervise

import "golang.org/x/sys/unix"

// clockID goes on while the machine is suspended.
const clockID = unix.CLOCK_BOOTTIME
