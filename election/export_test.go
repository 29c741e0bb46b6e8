package election

import "time"

// SetConfirmTime sets how long a release waits for the servers to confirm it.
func SetConfirmTime(d time.Duration) { confirmTime = d }
