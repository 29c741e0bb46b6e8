//go:build race

package locktest_test

// raceOn: the tests are slow, and one of several sets of options is enough to look for races.
const raceOn = true
