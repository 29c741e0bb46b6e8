package wire

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
		if got := s.now(); got != c.want {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
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

func TestAsleepIsSteady(t *testing.T) {
	a := asleep()
	b := asleep()
	if d := b - a; d > time.Minute || d < -time.Minute {
		t.Errorf("asleep for %v, then %v", a, b)
	}
}
