//go:build !race

package locktest_test

const raceOn = false
