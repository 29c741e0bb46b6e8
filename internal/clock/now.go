package clock

import (
	"sync/atomic"
	"time"
)

// Now returns the time by which leases are counted: [time.Now] plus the time for which this machine was suspended
// since the process began. On Linux and macOS, Go's monotonic clock stands still then, and the servers' clocks go on.
// A step of the wall clock does not change Now.
func Now() time.Time {
	now := time.Now()
	return now.Add(slept.at(slept.look(now)))
}

var slept = newSleep(asleep)

// sleep measures suspensions. A reading of total is two system calls on Linux, and locks ask for the time often. So a
// reading is used again for a moment, unless the wall clock tells of a suspension: see instant.
type sleep struct {
	total func() time.Duration
	start time.Time
	base  time.Duration
	most  atomic.Int64            // the largest result so far
	last  atomic.Pointer[instant] // nil if there is none to use again
}

// instant is a moment by Go's two clocks. A suspension is added to the wall clock only, so it shows in the lead of
// the wall clock, and total is read again. If a step of the wall clock cancels it, it is missed until the reading is
// too old.
type instant struct {
	mono time.Duration // since the process began
	lead time.Duration // of the wall clock over mono
}

const (
	readingLasts = 10 * time.Millisecond
	// leadNoise is more than the time between readings of the two clocks.
	leadNoise = 100 * time.Microsecond
	// sleepNoise is more than two clocks differ that are read one after the other.
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

// at returns the time of the suspensions up to now. It never decreases, and is never more than the truth.
func (s *sleep) at(now instant) time.Duration {
	if r := s.last.Load(); r != nil && (now.mono-r.mono).Abs() < readingLasts && (now.lead-r.lead).Abs() < leadNoise {
		return time.Duration(s.most.Load())
	}
	d := s.read()
	// An interrupted reading can be too small, so it is not used again. After a suspension since now, the next call
	// reads again.
	if time.Since(s.start)-now.mono < sleepNoise {
		last := now // only this copy escapes
		s.last.Store(&last)
	}
	return d
}

func (s *sleep) look(now time.Time) instant {
	mono := now.Sub(s.start)
	return instant{mono: mono, lead: time.Duration(now.UnixNano()) - mono}
}

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
