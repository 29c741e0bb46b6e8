//go:build !linux && !darwin

package clock

import "time"

// asleep is not known on this system: a suspension of the machine stops the lease clock.
func asleep() time.Duration { return 0 }
