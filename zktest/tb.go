package zktest

import "time"

// TB is what this package needs of a [testing.TB]: *testing.T and *testing.B
// have it.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
	Name() string
	Failed() bool
}

// pollInterval is how often a condition is looked at that nothing announces.
const pollInterval = 5 * time.Millisecond

// Eventually calls cond every few milliseconds until it returns true, and
// fails the test when it has not done so within the given time. What says what
// is being waited for. Cond is called at least once, always from the calling
// goroutine, which must be the test's own.
func Eventually(tb TB, within time.Duration, what string, cond func() bool) {
	tb.Helper()
	if cond() {
		return
	}
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if cond() {
				return
			}
		case <-deadline.C:
			// The last look decides, so that a slow machine between two
			// ticks is not mistaken for a condition that never came true.
			if cond() {
				return
			}
			tb.Fatalf("zktest: not within %v: %s", within, what)
			return
		}
	}
}
