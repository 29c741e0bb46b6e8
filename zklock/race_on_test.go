//go:build race

package zklock_test

// raceEnabled reports whether the race detector is on. It needs more memory.
const raceEnabled = true
