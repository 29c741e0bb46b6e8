//go:build race

package zklock_test

// raceEnabled reports whether the race detector is on, which takes memory of its own.
const raceEnabled = true
