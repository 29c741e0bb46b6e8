// Package disks has tests of the locks on real servers whose disks are slow, full, or lose what was not synced.
// The tests build a small library in C (testdata/disk.c) and have the servers load it ahead of the C library.
// Everything is in its tests, which run on Linux.
//
//	go test -v ./internal/tests/proofs/disks
//	make disks        all of them
//
// # Power cuts
//
// The library notes how far each file of a server was written when it was last synced. A power cut kills servers
// with SIGKILL, and then cuts their transaction logs to what was synced. That is the worst that a disk may do which
// keeps its word: usually the kernel has written more. Snapshots are kept, as if the kernel had written them: a
// server that has a log and no snapshot does not start.
//
// With forceSync=no ZooKeeper never syncs its log. ZooKeeper promises nothing then, and neither do the locks. The
// tests assert what goes wrong, so that docs/reliability.md can say it. They do the same with the defect that
// TestGap shows.
package disks
