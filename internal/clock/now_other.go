//go:build !linux && !darwin

package clock

import "time"

// asleep has nothing to add on Windows: Go's clock goes on during a suspension there. On other systems that is not
// known. If their monotonic clock stands still, so does the lease clock. A time that Go's clock has counted already
// must not be added: that would break the proof in lease.go.
func asleep() time.Duration { return 0 }
