//go:build linux || darwin

package clock

import (
	"errors"
	"testing"
	"time"
)

// An interruption between the readings of the two clocks never makes a suspension too long, and a
// clock that cannot be read makes none.
func TestAhead(t *testing.T) {
	const goesOn, standsStill, slept = 7, 4, 2 * time.Hour
	broken := errors.New("no such clock")
	for _, c := range []struct {
		name      string
		interrupt time.Duration // between two readings
		fail      int32
		want      time.Duration
	}{
		{"at once", 0, 0, slept},
		{"interrupted", time.Second, 0, slept - time.Second},
		{"no clock that goes on", 0, goesOn, 0},
		{"no clock that stands still", 0, standsStill, 0},
	} {
		now := 5 * time.Hour // that the machine was awake
		got := ahead(goesOn, standsStill, func(clock int32) (time.Duration, error) {
			defer func() { now += c.interrupt }()
			switch {
			case clock == c.fail:
				return 0, broken
			case clock == goesOn:
				return now + slept, nil
			}
			return now, nil
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
