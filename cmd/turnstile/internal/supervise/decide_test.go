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
	end := v.now + lease
	for {
		v.remaining = end - v.now
		action, wait := l.decide(v)
		guard := l.guardUntil(v)
		switch action {
		case terminate:
			if v.remaining < l.grace-time.Millisecond || v.remaining > l.grace {
				t.Errorf("SIGTERM with %v left, grace %v", v.remaining, l.grace)
			}
			v.told = v.now
		case kill:
			if v.told == 0 {
				t.Error("SIGKILL before SIGTERM")
			}
			if v.remaining < l.reserve-time.Millisecond {
				t.Errorf("SIGKILL with %v left, reserve %v", v.remaining, l.reserve)
			}
			if guard <= v.now || guard >= end {
				t.Errorf("the guard acts %v after turnstile, %v before the end", guard-v.now, end-guard)
			}
			return
		}
		v.now += wait
	}
}

// The guard's deadline never lies behind the lease's end, and comes at once if the lock is gone.
func TestGuardUntil(t *testing.T) {
	l, err := NewLimits(0, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	const now, s = time.Hour, time.Second
	for what, c := range map[string]struct {
		v    view
		want time.Duration
	}{
		"held":             {view{now: now, remaining: 4 * s}, now + 4*s - 125*time.Millisecond},
		"expired":          {view{now: now, fate: expired}, now},
		"deleted":          {view{now: now, fate: deleted}, now + 2*s + 125*time.Millisecond},
		"deleted and told": {view{now: now, fate: deleted, told: now - s}, now + s + 125*time.Millisecond},
	} {
		if got := l.guardUntil(c.v); got != c.want {
			t.Errorf("%s: %v from now, want %v", what, got-now, c.want-now)
		}
	}
}
