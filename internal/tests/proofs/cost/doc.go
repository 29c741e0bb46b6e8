// Package cost measures what the locks' protocol costs in round trips, requests, bytes and
// watches, and how that grows with contenders, sessions and locks. It has only a test, which
// fails when the protocol costs more than promised.
//
//	go test -run TestScaling ./internal/tests/proofs/cost
//	cd internal/tests/proofs/cost && go test -count=1 -run TestScaling -write    also writes docs/measured/cost.md
//
// TestStarvation measures in the same world how long contenders wait at worst while others take the lock again and again:
// docs/measured/starvation.md.
//
// The clients are the real ones, ours and go-zookeeper's, and so is the protocol between them
// and the server of package zktest. They run in a bubble of
// testing/synctest, in which every frame takes a millisecond each way and time stands still
// while anything can run. So a write takes one round trip of two milliseconds, and so does a
// read, and times come out as whole numbers of round trips, on any machine.
//
// Not simulated are processors, which take no time here, the log that a real server forces to
// disk, the quorum that a write waits for, the bandwidth of the network, and the queues in front
// of these under load. There is one server, so no server lags. The limits of an ensemble do
// therefore not show here; bench measures them with real servers.
//
// Events of one instant come in any order. In the world that is rare, and here it is the rule:
// all locks are held for no time, so that a holder leaves at the instant at which another
// contender lists the queue. The test must pass with any order.
package cost
