//go:build !race

package zklock_test

// raceEnabled: see race_on_test.go.
const raceEnabled = false
