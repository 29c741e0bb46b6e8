// Package ensembles tests the locks on ensembles of real servers through what operators and failures do
// to these: restarts one server after another, an upgrade, leaders that die, servers that are removed,
// an observer, a quorum that is lost, and read-only mode. Ticks and session timeouts are the defaults:
// 2 s and 10 s. Everything is in its tests.
//
//	go test -v ./internal/tests/proofs/ensembles
//	make ensembles        each scenario three times; with WRITE=1 the table goes into docs/measured/ensembles.md
//
// The upgrade needs a second ZooKeeper. The environment variable ZOOKEEPER_UPGRADE names its directory,
// which is like that of ZOOKEEPER_HOME. The servers start with the first and end with the second.
//
// TestRestored and its like restore servers from a backup, or wipe them, by the runbook in docs/operations.md.
//
// # Clients
//
// Eight workers take one lock in turn, each for a moment. Three other locks have two clients each, which
// hold for seconds. Every client has a manager, and so a session, of its own.
//
// # What is checked
//
//   - No two holds of a lock are held at one moment (package referee).
//   - No session is lost, except in an outage that is longer than a session of 10 s has to survive. An
//     outage, for one client, is a time in which no leader serves, fewer servers than a majority do, or
//     none of those does that the client may connect to. The servers are asked all the time. Losses are
//     not judged if goroutines of this process ran later than the margin of the lease clock.
//   - After the last fault every client is served again.
//   - Nobody gets a lock while there is no quorum, and no hold is left when sessions have run out.
//
// A stall is a time in which no worker gets the workers' lock. The longest of each scenario is written
// down, and how much of it was an outage for some client. Nothing is asserted about it.
package ensembles
