//go:build !linux

package zktest

import "time"

// napAtMost is 0: here a delay is as exact as a timer.
const napAtMost = time.Duration(0)

func nap(time.Duration) {}
