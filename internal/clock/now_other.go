//go:build !linux && !darwin

package clock

import "time"

// asleep has nothing to add on Windows: Go's clock is the interrupt time of the system there, which goes on during a suspension.
//
// It is not known on other systems. If their monotonic clock, which is Go's, stands still during a suspension, the lease clock
// does so, too. That can be so on FreeBSD, whose CLOCK_MONOTONIC and CLOCK_UPTIME were one clock for long. A difference between
// them in a later version may be a part of Go's clock already, so it is not added: time that is counted twice breaks the proof
// in lease.go.
func asleep() time.Duration { return 0 }
