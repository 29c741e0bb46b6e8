//go:build darwin || freebsd

package supervise

import "golang.org/x/sys/unix"

const clockID = unix.CLOCK_MONOTONIC
