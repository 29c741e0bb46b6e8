// Package simulation tries the lock protocol against schedules of faults, in virtual time and
// from seeds. It has only tests.
//
// One run is one seed. It has some managers with workers that lock, try, cancel, unlock, hold
// and close; three servers of zktest with ZooKeeper's own tick in the same bubble of
// testing/synctest, or in one seed of eight one server of any tick; a network between them that
// gives every frame its own delay; and a schedule of faults of the network and of the servers.
// All that is random is drawn from the seed, so that a seed can be replayed: see slots in
// clock_test.go.
//
// The lease clock has seeds of its own, each one attack on one holder: leaseseeds_test.go.
//
//	TURNSTILE_LONG=1 go test ./internal/tests/proofs/simulation       450 seeds, on two processes, and all mutants
//	go test ./internal/tests/proofs/simulation -run TestSeeds -seeds 5000 -first 100000
//	go test ./internal/tests/proofs/simulation -run TestSeed$ -seed 42 -v    one seed, with its trace
//	go test ./internal/tests/proofs/simulation -run TestMutants -v    that it catches each break of the protocol
//	go test ./internal/tests/proofs/simulation -run TestMutants -mutant no-sync -v
//
// A run has three parts. In the first, chaos, faults strike. Then all is healed and settles. In
// the last, calm, hand-overs must also be prompt. At its end every worker stops, and nothing
// may be left. The checks are in check_test.go.
//
// A lock type takes part by a row in the table of locks_test.go. Four rows are more than that:
// "mixed" has all types at once, with programs that misuse them (hostile_test.go), "resized"
// is a semaphore whose limit is changed all the time (limits_test.go), "kept" has locks that
// keep their places (keptcheck_test.go), and "election" has candidates (election_test.go) and
// observers (observer_test.go). A deliberate break of the protocol is a row in
// mutanttable_test.go.
package simulation
