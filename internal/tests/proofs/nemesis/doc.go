// Package nemesis runs real servers under schedules of faults, and judges what the users of locks have written down
// meanwhile. It runs on Linux, for its signals and for a clock that processes share. Everything is in its tests.
//
//	make nemesis                                  a short form of the schedules, as in continuous integration
//	make nemesis SCHEDULE=restarts,disks          these groups of schedules in full
//	make nemesis SCHEDULE=attack FOR=15m SEED=7 WRITE=1
//	go test ./internal/tests/proofs/nemesis -run TestNemesis -v -args -schedule soak -for 1h
//
// schedules_test.go has the list of schedules, the flags are in main_test.go, and each group has a file:
//
//	attack, soak           attack_test.go    strikes that are drawn from a seed
//	restarts               restarts_test.go  what operators do to servers, and dead leaders
//	backups                backups_test.go   servers that are restored from a backup
//	disks                  disks_test.go     slow and full disks, and power cuts
//	clocks                 clocks_test.go    the moment at which a wrong lease clock would show
//	outages                outages_test.go   which outages sessions survive, in virtual time
//
// # Who uses the locks
//
// In attack, soak and restarts, five workers use all kinds of locks in all ways (locks_test.go). Each is a process of its
// own with one session, and has some contenders for each lock (worker_test.go). Half of the processes log in by SASL, and
// half by the scheme digest. The directory of one mutex is closed to others. Half of the processes, of either sort,
// have the addresses of the servers from a resolver, which can fail, name few of them or none, and name one that is gone.
// The workers tell a desk (desk_test.go) what they do, and get orders on their standard input (process_test.go).
//
// In the other schedules, clients in this process do what they are told: a holder, and a rival that waits for its lock
// (lab_test.go).
//
// The -rival flag attacks the Lock of go-zookeeper in the same way. Its violations are counted, and do not fail the test: they
// show that the schedule and the checker find some.
//
// # Looks and holds
//
// A user of a lock looks: it asks whether it still holds, and writes down the time before it asked and after it was
// answered. For this module the question is whether the lease, the context of a Do, or Held says so. zk.Lock
// does not report a loss, so the question is whether Unlock has been called. The times are of CLOCK_MONOTONIC, one clock for all processes of a machine.
//
// A worker that says held twice has held in between. A worker that is stopped in the middle of a hold holds until it looks
// again. Then it is told that it does not hold, unless it can still be sure. A worker that is killed held at its last look,
// and does not hold after its death. Fencing tokens are for what a worker does between two looks, because it may have been
// stopped there for any time.
//
// # What has to be true
//
// One function judges all histories (judge_test.go), with one model for all kinds of locks (model_test.go):
//
//   - The history of looks is linearizable (by porcupine): what is held at once fits the lock, tokens grow, holders of one
//     process may have one token if the lock has local hand-over or keeps its place, and a writer can go on as a reader with
//     no other holder in between. A hold begins within its first look that said held. It ends between its last one and the
//     first look that said otherwise, the return of the release, or the death of its process, whichever the worker came to.
//   - No call fails because a server does not know who the worker is.
//
// Besides, for workers:
//
//   - When all is healed, every worker is served again. When the workers rest, with their sessions open, none of their
//     nodes is left. All processes end by themselves.
//   - In soak, after each round: no goroutine, open file, watch, node, session or connection is left, and no heap grows.
//   - In restarts: no session is lost in an outage that it has to survive.
package nemesis
