package wire

import (
	"sync/atomic"
	"time"
)

// Now returns the time by which leases are counted: [time.Now], moved on by as long as this
// machine was suspended since the process began. Go's monotonic clock stands still
// meanwhile, on Linux and elsewhere, while the servers' goes on. A step of the wall clock
// does nothing to it.
func Now() time.Time { return time.Now().Add(slept.now()) }

// slept is how long this machine was suspended since the process began.
var slept = newSleep(asleep)

// sleep measures by a clock that tells how long the machine was ever suspended.
type sleep struct {
	total func() time.Duration
	base  time.Duration
	most  atomic.Int64 // of now so far
}

// newSleep asks more than once for where to count from: any one answer can be too small.
func newSleep(total func() time.Duration) *sleep {
	s := &sleep{total: total}
	for range 8 {
		s.base = max(s.base, total())
	}
	return s
}

// now is never less than it was, and no more than the truth: see asleep.
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

// sleepNoise is more than two clocks that are read one after the other differ by when
// nobody slept. The thread can also be interrupted in between, but that makes it less: see
// asleep.
const sleepNoise = time.Millisecond
