//go:build race

package outages

const raceEnabled = true
