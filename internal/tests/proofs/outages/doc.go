// Package outages measures what a session survives: outages, slow networks, slow commits, and
// the death of the leader. It also counts what a session sends to survive that. Everything is
// in its tests, which fail if a session is lost that should have lived.
//
//	go test ./internal/tests/proofs/outages
//	make outages       the full tables, which go into docs/measured/outages.md
//
// All but the test of real servers run in virtual time (testing/synctest), on an ensemble of
// three servers of package zktest with ZooKeeper's default tick of two seconds. Processors
// and garbage collection take no time there. The sessions start at random times, from a fixed
// seed, so an outage strikes at every point of their heartbeats.
package outages
