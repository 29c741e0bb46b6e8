//go:build linux || darwin || freebsd

package supervise

import (
	"testing"
	"time"
)

// The guard understands lines that come in any pieces.
func TestGuardReads(t *testing.T) {
	const text = "group 42\nuntil 1000\nuntil 2000\ndone 0\n"
	for cut := range len(text) {
		var s guardState
		s.read(text[:cut])
		if s.done {
			t.Errorf("done after %q", text[:cut])
		}
		s.read(text[cut:])
		if !s.done || s.group != 42 || s.until != 2000 {
			t.Errorf("cut at %d: %+v", cut, s)
		}
	}
}

func TestGuardDeadline(t *testing.T) {
	const s = time.Second
	var g guardState
	if g.late(time.Hour) {
		t.Error("late without a deadline")
	}
	if got := g.wait(time.Hour); got != 100 {
		t.Errorf("without a deadline: %d ms", got)
	}
	g.until = 10 * s
	for now, want := range map[time.Duration]int{
		9 * s: 100, 9*s + 990*time.Millisecond: 10, 10*s - 1: 1, 10 * s: 0, 11 * s: 0,
	} {
		if got := g.wait(now); got != want {
			t.Errorf("at %v: wait %d ms, want %d", now, got, want)
		}
		if g.late(now) != (now >= 10*s) {
			t.Errorf("at %v: late %v", now, g.late(now))
		}
	}
}

// The clock that turnstile and its guard share goes forward, and is not the time of the day.
func TestClock(t *testing.T) {
	a := clock()
	b := clock()
	if a <= 0 || b < a {
		t.Errorf("%v, then %v", a, b)
	}
}
