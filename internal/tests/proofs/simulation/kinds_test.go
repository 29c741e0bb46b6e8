package simulation

import (
	"context"
	"slices"
	"strconv"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

var rwlockKind = kind{
	name:  "rwlock",
	modes: []string{"write", "read", "read"},
	modeOf: func(n queue.Node) string {
		if n.Prefix == queue.PrefixRead {
			return "read"
		}
		return "write"
	},
	open: func(m *session.Manager, path string) (map[string]any, error) {
		rw, err := rwlock.New(m, path)
		if err != nil {
			return nil, err
		}
		return map[string]any{"write": writer{rw}, "read": rw.Reader()}, nil
	},
	together: func(all []inside) bool {
		var writers []*worker
		for _, i := range all {
			if i.mode == "write" {
				writers = append(writers, i.who)
			}
		}
		return len(writers) == 0 || len(writers) == 1 &&
			!slices.ContainsFunc(all, func(i inside) bool { return i.who != writers[0] })
	},
	weight: func(ahead, me string) int {
		if ahead == "read" && me == "read" {
			return 0
		}
		return 1
	},
	slack:     func(string) int { return 0 },
	reentrant: true,
	also:      downgrade,
}

// writer is the write side, with the whole lock at hand.
type writer struct{ *rwlock.RWMutex }

// downgrade takes the read lock beside the write lock, and gives that back first.
func downgrade(k *worker, c *call, h *holding) bool {
	rw, ok := c.lock.(writer)
	if !ok {
		return false
	}
	d := &call{worker: k, mgr: c.mgr, path: c.path, mode: "read", lock: rw.Reader(), ctx: c.ctx, deadline: c.deadline}
	k.world.checks.begin(d)
	k.now("RLock " + c.path)
	err := rw.RLock(c.ctx)
	k.log("RLock while writing %s: %s", c.path, kindOfError(err))
	if lost(err) && !rw.Held() {
		k.world.checks.finish(d, true, nil)
		return false
	}
	k.world.checks.finish(d, err == nil, err)
	if err != nil {
		return false
	}
	dh := k.world.checks.held(d, rw.Reader().Held)
	k.unlock(c, rw, h)
	k.hold(dh)
	k.unlock(d, rw.Reader(), dh)
	return true
}

// leases is how many a semaphore has.
const leases = 3

var semaphoreKind = kind{
	name:   "semaphore",
	modes:  []string{"1", "1", "2", "3"},
	modeOf: func(n queue.Node) string { return strconv.Itoa(n.Weight) },
	open: func(m *session.Manager, path string) (map[string]any, error) {
		s, err := semaphore.New(m, path, leases)
		return map[string]any{"1": s, "2": several{s, 2}, "3": several{s, 3}}, err
	},
	together: atMostLeases,
	weight:   func(ahead, _ string) int { return atoi(ahead) },
	slack:    func(me string) int { return leases - atoi(me) },
}

// several asks for more leases than one.
type several struct {
	s *semaphore.Semaphore
	n int
}

func (a several) Acquire(ctx context.Context) (*queue.Lease, error) { return a.s.AcquireN(ctx, a.n) }
func (a several) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return a.s.TryAcquireN(ctx, a.n)
}

func atMostLeases(all []inside) bool {
	sum := 0
	for _, i := range all {
		sum += atoi(i.mode)
	}
	return sum <= leases
}

// atoi reads a mode that is a number.
func atoi(mode string) int {
	n, err := strconv.Atoi(mode)
	if err != nil {
		panic(err)
	}
	return n
}

// The layout of Curator: a mutex before the leases. The mode of its nodes is "0".
var curatorKind = kind{
	name:  "curator",
	modes: []string{"1"},
	modeOf: func(n queue.Node) string {
		if n.Prefix == queue.PrefixLock {
			return "0"
		}
		return "1"
	},
	open: func(m *session.Manager, path string) (map[string]any, error) {
		s, err := semaphore.New(m, path, leases, semaphore.WithCuratorLayout())
		return map[string]any{"1": s}, err
	},
	together: atMostLeases,
	weight: func(ahead, me string) int {
		if ahead != me {
			return 0
		}
		return 1
	},
	slack: func(me string) int {
		if me == "0" {
			return 0
		}
		return leases - 1
	},
	whole:     func(n queue.Node) bool { return n.Prefix == queue.PrefixLease },
	unordered: true,
}

// handovers is small, so that turns end in both ways.
const handovers = 2
