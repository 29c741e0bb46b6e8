package wire

import (
	"sync/atomic"
	"time"
)

// Now returns the time by which leases are counted: [time.Now] plus the time for which this
// machine was suspended since the process began. Go's monotonic clock stands still during a
// suspension, on Linux and other systems, while the servers' clocks go on. A step of the wall
// clock does not change Now.
func Now() time.Time { return time.Now().Add(slept.now()) }

// slept is how long this machine was suspended since the process began.
var slept = newSleep(asleep)

// sleep measures suspensions with a clock that counts the time that the machine was ever
// suspended.
type sleep struct {
	total func() time.Duration
	base  time.Duration
	most  atomic.Int64 // the largest result of now so far
}

// newSleep reads the clock several times for its base, because any one reading can be too small.
func newSleep(total func() time.Duration) *sleep {
	s := &sleep{total: total}
	for range 8 {
		s.base = max(s.base, total())
	}
	return s
}

// now never decreases, and never returns more than the truth: see asleep.
func (s *sleep) now() time.Duration {
	d := int64(s.total() - s.base)
	for {
		old := s.most.Load()
		if d <= old+int64(sleepNoise) {
			return time.Duration(old)
		}
		if s.most.CompareAndSwap(old, d) {
			return time.Duration(d)
		}
	}
}

// sleepNoise is more than the difference between two clocks that are read one after the other
// while the machine is awake. The thread can also be interrupted between the two readings. That
// only makes the result too small: see asleep.
const sleepNoise = time.Millisecond
