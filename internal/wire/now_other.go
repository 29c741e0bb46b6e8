//go:build !linux && !darwin

package wire

import "time"

// asleep is not known here: a machine that is suspended stops the lease clock.
func asleep() time.Duration { return 0 }
