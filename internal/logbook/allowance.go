package logbook

import (
	"slices"
	"time"
)

// allowance bounds how often a line is logged: no more than most in any window of time.
type allowance struct {
	allowed  []time.Time
	muted    bool // the last line was not allowed
	unlogged int  // lines since the last one that was allowed
}

const (
	flapsLogged  = 10
	flapWindow   = 10 * time.Minute
	brokenLogged = 10
	brokenWindow = time.Hour
)

// allow reports whether a line may be logged, and how many were not since the last one.
func (a *allowance) allow(now time.Time, most int, window time.Duration) (ok bool, unlogged int) {
	a.allowed = slices.DeleteFunc(a.allowed, func(at time.Time) bool { return now.Sub(at) >= window })
	if a.muted = len(a.allowed) >= most; a.muted {
		a.unlogged++
		return false, 0
	}
	a.allowed = append(a.allowed, now)
	unlogged, a.unlogged = a.unlogged, 0
	return true, unlogged
}
