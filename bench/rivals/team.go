package main

import (
	"context"
	"strings"
	"time"
)

// kind is one of the locks or, for the limits, the requests that every lock needs.
type kind string

const (
	mutex     kind = "mutex"
	rw        kind = "rw"
	semaphore kind = "semaphore"
	several   kind = "several" // mutexes, taken together
	own       kind = "own"     // one of many mutexes at each use, mostly of those that the worker has to itself
	keyed     kind = "keyed"   // that of a key, which is another one at each use, with a lock object for each use
	oneWrite  kind = "one write"
	twoWrites kind = "two writes"
)

// plan describes a team: its workers, each with a lock object of its own, and its sessions.
type plan struct {
	kind     kind
	servers  string // addresses with commas between; see server
	path     string
	sessions int
	workers  int
	leases   int  // of a semaphore
	locks    int  // of several mutexes, of each worker's own, and of keys
	every    int  // of so many cycles with a read-write lock, one writes
	turns    int  // the workers take turns of so many cycles; 0: they work at once
	apart    bool // each worker has a path of its own
	lazy     bool // places are kept, by rivals that can
	async    bool // no release waits for the servers, by rivals that can
	shared   bool // the workers of a session share a lock object, which is handed on among them
}

// writes reports whether a cycle of a worker writes. The workers' writes are spread evenly.
func (p plan) writes(worker, cycle int) bool {
	return p.every == 0 || (worker*p.every/p.workers+cycle)%p.every == 0
}

// server is the server to which a session is connected. The sessions of all rivals are spread alike. Left to
// themselves, libraries choose a server at random, and a rival with its session at the leader saves a hop.
func (p plan) server(session int) string {
	all := strings.Split(p.servers, ",")
	return all[session%len(all)]
}

// contenders is how many contenders there are when all workers want the same lock.
func (p plan) contenders() int {
	if p.shared {
		return p.sessions
	}
	return p.workers
}

// team is the workers of one rival, which want a lock. The code is the same in each rival's language,
// except for the lock itself. A lock object is made when its worker first needs it. A team has one
// call at a time.
type team interface {
	// Cycles has each worker take its lock and give it back n times, all at once or in turns.
	Cycles(ctx context.Context, n int, hold time.Duration) (outcome, error)
	// Hold has the first worker take its lock and keep it, Drop give it back.
	Hold(ctx context.Context) error
	Drop(ctx context.Context) error
	// Try has the second worker try to take what the first one holds n times, in vain.
	Try(ctx context.Context, n int) (outcome, error)
	// Queue has all but the first worker begin to take the lock and give it back once;
	// Drain drops the first one's and waits for them.
	Queue(ctx context.Context) error
	Drain(ctx context.Context) (outcome, error)
	// HoldAll has all workers take their locks, one after another, DropAll give them back.
	HoldAll(ctx context.Context) error
	DropAll(ctx context.Context) error
	// Memory is how many bytes the process has in use.
	Memory(ctx context.Context) (uint64, error)
	// Processor is how much processor time the process has used.
	Processor(ctx context.Context) (time.Duration, error)
	Close() error
}

// outcome is the measurement of a team.
type outcome struct {
	elapsed time.Duration
	cycles  []time.Duration // from before the lock until after the release, without the hold
	gaps    []time.Duration // until a holder that had to wait runs: from before the release, or, behind a kept place, from the answer to its create
}

func (o outcome) rate() float64 { return float64(len(o.cycles)) / o.elapsed.Seconds() }

// rival is a lock library, which makes teams.
type rival interface {
	Name() string
	// Lacks says why the rival has no part in a row, and "" if it has.
	Lacks(row) string
	Open(context.Context, plan) (team, error)
	// Contenders returns how many contenders the servers have at a path.
	Contenders(ctx context.Context, path string) (int, error)
	// Version says what was measured.
	Version() string
	Close() error
}
