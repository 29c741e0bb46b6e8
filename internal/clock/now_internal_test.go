package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// Time asleep counts. The difference between two clocks while the machine is awake does not
// count. The result never decreases.
func TestSleep(t *testing.T) {
	const ms = time.Millisecond
	total := 5 * time.Hour // since the machine started
	s := newSleep(func() time.Duration { return total })
	for i, c := range []struct{ total, want time.Duration }{
		{5 * time.Hour, 0},
		{5*time.Hour + ms/2, 0},
		{5*time.Hour - 20*ms, 0}, // interrupted between the two clocks
		{6 * time.Hour, time.Hour},
		{6*time.Hour - 20*ms, time.Hour},
		{6*time.Hour + ms/2, time.Hour},
		{6*time.Hour + 2*ms, time.Hour + 2*ms},
	} {
		total = c.total
		if got := s.read(); got != c.want {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
}

// The clock is not read each time. It is read again when the last reading is old, and at once
// when the wall clock has moved against the monotonic clock, as it does when the machine wakes up.
func TestSleepReadsAgain(t *testing.T) {
	reads, total := 0, time.Duration(0)
	s := newSleep(func() time.Duration { reads++; return total })
	settle := func() instant { // until a reading was not interrupted
		for {
			now := s.look(time.Now())
			s.at(now)
			before := reads
			if s.at(now); reads == before {
				return now
			}
		}
	}
	for _, c := range []struct {
		name       string
		mono, lead time.Duration
		again      bool
	}{
		{"a moment later", time.Millisecond, time.Microsecond, false},
		{"a moment earlier, in another goroutine", -time.Millisecond, -time.Microsecond, false},
		{"old", readingLasts, 0, true},
		{"suspended", 0, time.Hour, true},
		{"suspended for a moment", 0, leadNoise, true},
		{"the wall clock was set back", 0, -time.Hour, true},
	} {
		now := settle()
		total += time.Hour
		before, known := reads, s.at(now)
		got := s.at(instant{mono: now.mono + c.mono, lead: now.lead + c.lead})
		if again := reads != before; again != c.again {
			t.Errorf("%s: read again: %v, want %v", c.name, again, c.again)
		}
		if c.again && got != known+time.Hour {
			t.Errorf("%s: %v asleep after %v, want one hour more", c.name, got, known)
		}
		if !c.again {
			total -= time.Hour
		}
	}
}

// In a synctest bubble, Now is the time of the bubble.
func TestNowInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Now()
		time.Sleep(time.Hour)
		if d := Now().Sub(before); d != time.Hour {
			t.Errorf("an hour took %v", d)
		}
	})
}
