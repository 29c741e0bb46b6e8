// Package clockmodel has the derivation of the lease clock (internal/clock/lease.go) as formulas, which the
// solver z3 proves: from all assumptions follows that the leader has touched the session at F or later,
// and that the client's clock ends the lease before the leader can expire the session.
//
// Each statement of the derivation is a formula with a name and the words of lease.go that it speaks of.
// The proof is that no schedule obeys all formulas and breaks the conclusion. Then each formula is left
// out, one at a time. If there is a schedule now, the formula is needed, and the schedule shows what it
// costs to drop it. If there is none, the derivation does not need the formula, and the tests say so by
// name.
//
//	go test -v ./internal/tests/proofs/clockmodel           # prints the theorem, the formulas and the schedules
//	go test ./internal/tests/proofs/clockmodel -write       # writes the schedules into docs/measured/clock.md
//
// # Why a few events are enough
//
// The conclusion speaks of one frame F, one request through the leader R and one write W. The derivation
// uses two pings, which are the last one before a certain moment and the next one, their lists, and one
// earlier list. Each formula is a statement about these events alone. A schedule of the world has any
// number of other events. If it broke the conclusion, its own F, R, W, pings and lists would obey all
// formulas, and break it too. The solver shows that no times do that. (If the leader has not pinged the
// server before that moment, take for the ping the moment at which the server joined the leader, and an
// empty list.) The times are real numbers, and half a tick, the gap, the timeout and the margin are
// variables, so that it shows this for all of their values.
//
// A counterexample is a whole schedule: nothing else happens in it. For these, the timeout is 10 s and
// half a tick 1 s, as they are by default.
//
// # Whose clock
//
// All times are by the client's clock, together with the time for which its machine was suspended. Only
// the ratio of two rates matters, so the servers have the wrong clocks: half a tick and the timeout take
// longer or shorter than they should.
package clockmodel
