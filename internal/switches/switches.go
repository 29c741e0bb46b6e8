// Package switches is the way to what package zktest can do and does not export, because only the tests of this
// module have a use for it. Package zktest sets the variables. Package testserver has them with their types.
package switches

var (
	// Of returns the switches of a *zktest.Server or of a *zktest.Ensemble.
	Of func(servers any) any

	// ClockRate returns a zktest.Option.
	ClockRate func(rate float64) any

	// Between returns a zktest.RealOption. It has f called before the servers start, with the ports at which they
	// listen for each other. f returns the ports at which each server looks for each of them.
	Between func(f func(all []Ports) (seen [][]Ports, err error)) any
)

// Ports are a server's ports for other servers.
type Ports struct{ Quorum, Election int }
