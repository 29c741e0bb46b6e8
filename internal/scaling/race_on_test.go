//go:build race

package scaling

const raceEnabled = true
