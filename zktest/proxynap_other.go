//go:build !linux

package zktest

import "time"

// napAtMost is 0: delays end with a timer alone.
const napAtMost = time.Duration(0)

func nap(time.Duration) {}
