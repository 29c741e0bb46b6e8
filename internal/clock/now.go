package clock

import (
	"sync/atomic"
	"time"
)

// Now returns the time by which leases are counted: [time.Now] plus the time for which this
// machine was suspended since the process began, if Go's monotonic clock does not count that. On Linux
// and macOS, Go's clock stands still during a suspension, while the servers' clocks go on. On Windows it
// goes on. A step of the wall clock does not change Now.
func Now() time.Time {
	now := time.Now()
	return now.Add(slept.at(slept.look(now)))
}

// slept is how long this machine was suspended since the process began.
var slept = newSleep(asleep)

// sleep measures suspensions with a clock that counts the time that the machine was ever
// suspended. On Linux, each reading of that clock is two system calls, and a lock asks for the time
// many times. So a reading is used again for a moment, as long as the wall clock tells of no
// suspension: see instant.
type sleep struct {
	total func() time.Duration
	start time.Time
	base  time.Duration
	most  atomic.Int64            // the largest result so far, in nanoseconds
	last  atomic.Pointer[instant] // of the last reading of total; nil if there is none to use again
}

// instant is a moment by Go's two clocks. When the machine wakes up, the system adds the time of the
// suspension to the wall clock and to the clock that total reads, and not to the monotonic clock. So
// a suspension after a reading shows in the wall clock's lead over the monotonic clock, just as a
// step of the wall clock does, and total is read again. If a step of the wall clock cancels the
// suspension to within leadNoise, the suspension is missed until the reading is too old.
type instant struct {
	mono time.Duration // by the monotonic clock, since the process began
	lead time.Duration // of the wall clock over mono
}

const (
	// readingLasts is how long a reading is used. It is time in which the machine is awake.
	readingLasts = 10 * time.Millisecond
	// leadNoise is more than the time between two readings of Go's clocks, one after the other.
	leadNoise = 100 * time.Microsecond
	// sleepNoise is more than the difference between two clocks that are read one after the other
	// while the machine is awake. The thread can also be interrupted between the two readings. That
	// only makes the result too small: see asleep.
	sleepNoise = time.Millisecond
)

// newSleep reads the clock several times for its base, because any one reading can be too small.
func newSleep(total func() time.Duration) *sleep {
	s := &sleep{total: total, start: time.Now()}
	for range 8 {
		s.base = max(s.base, total())
	}
	return s
}

// at returns the time of the suspensions up to now, which has just been looked at. It never
// decreases, and is never more than the truth: see asleep.
func (s *sleep) at(now instant) time.Duration {
	if r := s.last.Load(); r != nil && (now.mono-r.mono).Abs() < readingLasts && (now.lead-r.lead).Abs() < leadNoise {
		return time.Duration(s.most.Load())
	}
	d := s.read()
	// An interrupted reading can be too small, so it is not used again. Go's clocks were looked at
	// before the reading, so a suspension in between makes the next call read again.
	if time.Since(s.start)-now.mono < sleepNoise {
		last := now // so that only this makes garbage
		s.last.Store(&last)
	}
	return d
}

// look takes an instant from what time.Now has returned.
func (s *sleep) look(now time.Time) instant {
	mono := now.Sub(s.start)
	return instant{mono: mono, lead: time.Duration(now.UnixNano()) - mono}
}

// read reads the clock.
func (s *sleep) read() time.Duration {
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
