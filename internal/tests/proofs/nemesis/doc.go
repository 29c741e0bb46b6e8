// Package nemesis has a test that attacks real servers and real processes at once: three
// ZooKeeper servers, five workers in processes of their own that take the same locks in turn,
// and a schedule, drawn from a seed, of kills, pauses, partitions and lost leaders. It runs on
// Linux, for its signals and for a clock that processes share.
//
//	go test ./internal/tests/proofs/nemesis -v
//	NEMESIS=15m NEMESIS_SEED=7 RIVAL=all go test ./internal/tests/proofs/nemesis -v -timeout 0 -write
//
// All kinds of locks of this module are attacked at once. Each worker has one session, and in it some contenders for
// each of these: a mutex, a mutex with local hand-over, a read-write lock with downgrades, a semaphore whose limit is
// changed all the time, a semaphore in Curator's layout, several mutexes at one path, a mutex and a read-write lock
// whose places three of the workers keep, an election whose leaders return or resign, and multi-locks, which take three
// of the others. A mutex, a read-write lock and a semaphore are taken by tries now and then. Two of the workers send
// the creates and deletes of their contenders in transactions whenever several come at a time. The history of each lock
// is judged apart.
//
// Half of the processes log in by SASL, and half by the scheme digest. The directory of the tried mutex is closed
// to others. Half of the processes, of either sort, have the addresses of the servers from a resolver, which can fail,
// name few of them or none, and name one that is gone.
//
// LOCK names some of them, with commas between, to attack no others:
// LOCK=counting-semaphore,rwlock.
//
// HISTORY names a directory into which the histories of the locks with one holder are written in Jepsen's notation, for
// a checker that is not ours: see docs/reliability.md.
//
// RIVAL=zk attacks the Lock of go-zookeeper instead, RIVAL=curator attacks Curator's
// InterProcessMutex, and RIVAL=all attacks this module and both of them one after another, with
// the same seed. The violations of a rival are counted, and do not fail the test.
//
// # Looks and holds
//
// A worker looks: it asks whether it still holds, and writes down the time before it asked
// and after it was answered. For this module the question is lease.Err() == nil. For Curator it
// is isAcquiredInThisProcess, and no SUSPENDED or LOST since the acquisition, as its
// documentation advises. zk.Lock does not report a loss, so the question is whether Unlock has
// been called. The times are of CLOCK_MONOTONIC, one clock for all processes of a machine.
//
// The span of a hold goes from the end of its first look that said held to the beginning of its
// last look that said held: a worker that says held twice has held in between. A worker that is
// stopped in the middle of a hold holds until it looks again. Then it is told that it does not
// hold, unless it can still be sure. A worker that is killed held at its last look, and does not
// hold after its death. Fencing tokens are for what a worker does between two looks, because it
// may have been stopped there for any time.
//
// # Conditions
//
//   - Spans of two holds that exclude each other do not overlap. (Violations in the table.)
//   - Of the leases of a semaphore, at no time are more held than the limit that was in force when
//     the last of them was let in. The comment in limitmodel_test.go says when that is.
//   - A register outside of ZooKeeper refuses tokens that are lower than one it has seen. It
//     refuses no worker that still holds afterwards.
//   - Of lines written to a common file under the lock, those whose writer looked again
//     afterwards and still held are in the order of their tokens, and no other lines are
//     between the lines of one hold.
//   - The history of looks is linearizable (by porcupine): as a lock whose tokens grow, where
//     holders of one process may have one token if the lock has local hand-over or keeps its place;
//     as a read-write lock, whose writer can go on as a reader with no other holder in between; or as
//     a semaphore. So is that of the register, which refuses lower tokens. A hold of a lock begins
//     within its first look that said held. It ends between its last one and the first look that said
//     otherwise, the return of the release, or the death of its process, whichever the
//     worker came to.
//   - No try is refused if no contender can have been ahead of it. The comment in
//     refusalcheck_test.go says how that is decided.
//   - No call fails because a server does not know who the worker is.
//   - When all is healed, every worker is served again. When the workers rest, with their
//     sessions open, none of their nodes is left. Then each contender for a tried lock takes it once
//     more when nobody else does, by calls that could be refused, and is not.
package nemesis
