package clock

import "golang.org/x/sys/unix"

const goesOn, standsStill = unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_UPTIME_RAW
