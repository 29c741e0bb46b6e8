//go:build linux || darwin

package clock

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An interruption between the readings of the two clocks never makes a suspension too long, and a
// clock that cannot be read makes none.
func TestAhead(t *testing.T) {
	const slept = 2 * time.Hour
	broken := errors.New("no such clock")
	for _, c := range []struct {
		name      string
		interrupt time.Duration // between two readings
		fail      int32         // no clock has this number if it is -1
		want      time.Duration
	}{
		{"at once", 0, -1, slept},
		{"interrupted", time.Second, -1, slept - time.Second},
		{"no clock that goes on", 0, goesOn, 0},
		{"no clock that stands still", 0, standsStill, 0},
	} {
		now := 5 * time.Hour // that the machine was awake
		got := ahead(func(clock int32, to *unix.Timespec) error {
			defer func() { now += c.interrupt }()
			switch clock {
			case c.fail:
				return broken
			case goesOn:
				*to = unix.NsecToTimespec(int64(now + slept))
			default:
				*to = unix.NsecToTimespec(int64(now))
			}
			return nil
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
