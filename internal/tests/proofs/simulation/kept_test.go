package simulation

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
)

var together = ownership{shared: true, perCall: true}

// usage is what calls of one mode take, and how.
type usage struct {
	parts []part // below the path
	lazy  bool   // places are kept
	most  int    // hand-overs in a place, from when another contender has come
	ownership
}

// usages has the usage of each mode.
type usages map[string]usage

// drawKeeps draws for how long places are kept. The values are whole milliseconds: see slot.
func (all usages) drawKeeps(seed uint64) map[string]time.Duration {
	keeps := make(map[string]time.Duration)
	for mode, how := range all {
		if !how.lazy {
			continue
		}
		h := mix(seed, "keep", strings.Replace(mode, "write", "read", 1)) // both sides of an RWMutex have one option
		most := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, 10 * time.Second}[h%5]
		keeps[mode] = between(h>>8, time.Millisecond, most).Truncate(time.Millisecond)
	}
	return keeps
}

// readLeases is the read side of a lock that workers share. Each hold has a lease of its own: RUnlock
// would give back the hold of any of them.
type readLeases struct{ rw *rwlock.RWMutex }

func (r readLeases) Acquire(ctx context.Context) (*queue.Lease, error) {
	return r.rw.Reader().Acquire(ctx)
}
func (r readLeases) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return r.rw.Reader().TryAcquire(ctx)
}

// modes returns the modes in order: maps have none, and seeds draw by number.
func (all usages) modes() []string { return slices.Sorted(maps.Keys(all)) }

func (all usages) whose(mode string) ownership { return all[mode].ownership }

func (all usages) partsOf(c *call) []part { return below(c.path, all[c.mode].parts) }

// meet is the weight of a call for another.
func (all usages) meet(ahead, me *call) int {
	for _, p := range all.partsOf(ahead) {
		for _, q := range all.partsOf(me) {
			if p.dir == q.dir && !(p.mode == "read" && q.mode == "read") {
				return 1
			}
		}
	}
	return 0
}

// choose draws the path and the mode of a worker's next call. Without favourites no place would be
// used again: each lock object has a place of its own.
func (k *worker) choose(favourites [][]string) (path, mode string) {
	w := k.world
	visits := []int{3, 10, 30}[mix(w.seed, "visits")%3]
	if k.rng.IntN(visits) == 0 {
		return w.plan.paths[k.rng.IntN(len(w.plan.paths))], w.kind.modes[k.rng.IntN(len(w.kind.modes))]
	}
	path = w.plan.paths[(k.m.party-firstManager)%len(w.plan.paths)]
	mine := favourites[mix(w.seed, "favourite", k.m.party)%uint64(len(favourites))]
	return path, mine[k.rng.IntN(len(mine))]
}
