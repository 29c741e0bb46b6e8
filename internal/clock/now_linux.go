package clock

import "golang.org/x/sys/unix"

const goesOn, standsStill = unix.CLOCK_BOOTTIME, unix.CLOCK_MONOTONIC
