package zktest

import "time"

// TB is the part of [testing.TB] that this package uses. *testing.T and *testing.B implement it.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
	Name() string
	Failed() bool
}

// pollInterval is how often a condition is checked whose changes nothing announces.
const pollInterval = 5 * time.Millisecond

// Eventually calls cond every few milliseconds until it returns true. It fails the test if cond has
// not returned true within the given time; what names the condition in the message. Eventually calls
// cond at least once. Call it from the test's own goroutine, in which it calls cond, too.
func Eventually(tb TB, within time.Duration, what string, cond func() bool) {
	tb.Helper()
	for late := time.Now().Add(within); ; <-time.After(pollInterval) {
		over := time.Now().After(late) // before cond: on a slow machine it may have come true since the last call
		if cond() {
			return
		}
		if over {
			tb.Fatalf("zktest: not within %v: %s", within, what)
			return
		}
	}
}
