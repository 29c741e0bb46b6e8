package clock

import "time"

// asleep has nothing to add: on Windows, Go's clock is the interrupt time of the system, which goes
// on during a suspension.
func asleep() time.Duration { return 0 }
