package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// leaser is what a worker needs of a lock, in one of its modes.
type leaser interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

// locker is a leaser that can also be held without a handle.
type locker interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) (bool, error)
	Unlock() error
	Held() bool
}

// async reports whether Unlock of a mode waits for no server.
func (k kind) async(mode string) bool { return slices.Contains(k.asyncs, mode) }

// kind is a type of lock and its rules, written independently of the library.
type kind struct {
	name string
	// modes are the ways to hold it; each call has one of them.
	modes []string
	// modeOf tells a contender's mode.
	modeOf func(n queue.Node) string
	// open makes the lock at a path, as a leaser, a locker or both, for each mode.
	open func(m *session.Manager, path string) (map[string]any, error)
	// together reports whether the lock may be held in all of these ways at once.
	together func(all []inside) bool
	// weight is the weight of a node ahead for a contender in mode me, and slack its slack.
	weight func(ahead, me string) int
	slack  func(me string) int
	// whole reports whether the lock is held when this node is granted. Otherwise the node is only
	// one step of several. nil: always.
	whole func(n queue.Node) bool
	// unordered says that there is no order of arrival: several queues, or places that are handed over.
	unordered bool
	// shared says that workers of a manager may use one lock object, which knows the owner of each
	// hold.
	shared bool
	// handovers is how often, at most, workers of a manager hand over a node that is held. They
	// have one lock object then, and one node at a time. 0: each worker has its own node.
	handovers int
	// reentrant says that WithOwner of zklock works on it.
	reentrant bool
	// also is what else an owner may do with its hold. It reports whether the owner has given
	// the hold back.
	also func(k *worker, c *call, h *holding) bool
	// parts returns the directories in which a call takes something, and what it takes there.
	// nil: one directory, the call's path, and what the call's mode says.
	parts func(c *call) []part
	// meet is the weight of one call for another, for a kind that has parts.
	meet func(ahead, me *call) int
	// whose returns how workers of a manager come by the lock objects for a mode of a kind that
	// has parts.
	whose func(mode string) ownership
	// limited returns the semaphores below a path whose limit workers change, with the limit
	// that all give to New. nil: none.
	limited func(path string) map[string]int
	// revocable says that a holder gives up its lease when it is asked to.
	revocable bool
	// drawn returns the kind as a seed draws it. nil: all seeds have the same.
	drawn func(k kind, seed uint64) kind
	// choose draws the path and the mode of a call. nil: any.
	choose func(k *worker) (path, mode string)
	// keeps is for how long, at most, places of calls of each mode are kept after a release. nil: no place
	// is kept.
	keeps map[string]time.Duration
	// usages has what calls of each mode take, in a kind that keeps places.
	usages usages
	// hostile says that functions of a Do panic, that sessions have few nodes, and that workers that hold
	// nothing call Unlock.
	hostile bool
	// asyncs are the modes of locks whose Unlock waits for no server.
	asyncs []string
	// observed says that observers are compared with the server.
	observed bool
	// sasl says that the servers insist on SASL.
	sasl bool
}

// part is what a call takes in one directory.
type part struct{ dir, mode string }

// ownership is how workers of a manager come by the lock objects for a mode.
type ownership struct {
	shared bool // all have one object
	// perCall says that a call does not have exactly one node of its own. It may share one with
	// others of the process, or have several.
	perCall bool
}

func (k kind) partsOf(c *call) []part {
	if k.parts == nil {
		return []part{{c.path, c.mode}}
	}
	return k.parts(c)
}

// weightOf returns the weight of one call for another.
func (k kind) weightOf(ahead, me *call) int {
	if k.meet != nil {
		return k.meet(ahead, me)
	}
	return k.weight(ahead.mode, me.mode)
}

// ownershipOf returns how a worker comes by the lock object for a mode.
func (k kind) ownershipOf(mode string) ownership {
	if k.whose != nil {
		return k.whose(mode)
	}
	return ownership{}
}

// busy reports whether others of some weight are a reason for a try to fail.
func (k kind) busy(weight int, mode string) bool {
	return weight > k.slack(mode) || k.unordered && weight > 0
}

// inside is a holder of a lock.
type inside struct {
	mode  string
	who   *worker
	grant grantInfo
}

// kinds has those last that were added last: see kindOf.
var kinds = []kind{mutexKind, rwlockKind, semaphoreKind, curatorKind, resizedKind, mixedKind, electionKind, everythingKind}

var mutexKind = kind{
	name:   "mutex",
	modes:  []string{"lock"},
	modeOf: func(queue.Node) string { return "lock" },
	open: func(m *session.Manager, path string) (map[string]any, error) {
		mx, err := zklock.New(m, path)
		return map[string]any{"lock": mx}, err
	},
	together:  func(all []inside) bool { return len(all) <= 1 },
	weight:    func(string, string) int { return 1 },
	slack:     func(string) int { return 0 },
	shared:    true,
	reentrant: true,
}

// dirs returns the directories below a path in which calls take something.
func (k kind) dirs(path string) (out []string) {
	for _, mode := range k.modes {
		for _, p := range k.parts(&call{path: path, mode: mode}) {
			out = append(out, p.dir)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
