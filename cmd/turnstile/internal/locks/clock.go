package locks

import (
	"fmt"
	"time"
)

// Clock is the present time of the servers, by which all ages are counted: their clock has stamped the nodes.
type Clock struct {
	Time time.Time
	Skew time.Duration // how far it is ahead of the clock here
}

// Note names the difference of the clocks, if it is one that people would wonder at. Otherwise it is empty.
func (c Clock) Note() string {
	const most = 2 * time.Second
	if c.Skew.Abs() <= most {
		return ""
	}
	side := map[bool]string{true: "behind that", false: "ahead of that"}[c.Skew > 0]
	return fmt.Sprintf("The clock of this machine is %s %s of the servers, by which the ages are.", Span(c.Skew.Abs().Round(time.Second)), side)
}

// Ago returns how long ago a time of the servers was, for people.
func (c Clock) Ago(at time.Time) string {
	if at.IsZero() {
		return "?"
	}
	return Span(c.Time.Sub(at))
}

// Span returns a duration for people, with two units at most: "12s", "3m4s", "5h12m", "3d4h".
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}
