package supervise

import (
	"testing"
	"time"
)

// However an outage and the intervals between two looks fall together, the group gets SIGTERM no
// later than the grace period before the lease's end, and SIGKILL no later than the reserve. The guard's deadline lies
// between that and the end.
func TestDecideInTime(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 4 * time.Second, 10 * time.Second, time.Minute} {
		for _, grace := range []time.Duration{0, timeout / 20, timeout / 4} {
			l, err := NewLimits(grace, timeout)
			if err != nil {
				t.Fatal(err)
			}
			for shift := range 50 {
				inTime(t, l, timeout*7/10+time.Duration(shift)*7*time.Millisecond)
			}
		}
	}
}

// inTime follows a command that ignores SIGTERM, under a lease that ends after some time.
func inTime(t *testing.T, l Limits, lease time.Duration) {
	t.Helper()
	v := view{now: time.Hour, running: true}
	for stop := v.now + lease; ; {
		v.remaining = stop - v.now
		end, kill, wait := l.decide(v)
		switch {
		case kill <= v.now:
			if v.told == 0 {
				t.Error("SIGKILL before SIGTERM")
			}
			if v.remaining < l.reserve-time.Millisecond {
				t.Errorf("SIGKILL with %v left, reserve %v", v.remaining, l.reserve)
			}
			return
		case end:
			if v.remaining < l.grace-time.Millisecond || v.remaining > l.grace {
				t.Errorf("SIGTERM with %v left, grace %v", v.remaining, l.grace)
			}
			v.told = v.now
		}
		v.now += wait
	}
}

// SIGTERM comes once, and SIGKILL a grace period later, or at once if the session is gone.
func TestDecide(t *testing.T) {
	l, err := NewLimits(0, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	const now, s, reserve = time.Hour, time.Second, 250 * time.Millisecond
	for what, c := range map[string]struct {
		v    view
		end  bool
		kill time.Duration // from now
	}{
		"held":             {view{remaining: 4 * s, running: true}, false, 4*s - reserve},
		"nearly over":      {view{remaining: 2 * s, running: true}, true, 2*s - reserve},
		"asked for":        {view{remaining: 9 * s, running: true, give: true}, true, 2 * s},
		"processes left":   {view{remaining: 9 * s}, true, 2 * s},
		"expired":          {view{lost: true, running: true}, true, -reserve},
		"deleted":          {view{lost: true, remaining: 10 * s, running: true}, true, 2 * s},
		"deleted and told": {view{lost: true, remaining: 10 * s, running: true, told: now - s}, false, s},
		"held again":       {view{remaining: 9 * s, running: true, told: now - s}, false, s},
	} {
		c.v.now = now
		if end, kill, _ := l.decide(c.v); end != c.end || kill != now+c.kill {
			t.Errorf("%s: SIGTERM %v, SIGKILL in %v, want %v, %v", what, end, kill-now, c.end, c.kill)
		}
	}
}
