package simulation

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Locks with WithLazyRelease, beside locks without it. Each manager has a path of its own, which its
// workers use most of the time, so that places are kept. keptcheck_test.go has the checks.
var keptKind = kind{
	name:      "kept",
	modes:     []string{"lazy", "lazy", "second", "handed", "plain", "plain", "write", "read", "read", "plain write", "plain read", "both"},
	modeOf:    typedMode,
	drawn:     drawKept,
	together:  mixedTogether,
	weight:    mixedWeight,
	slack:     mixedSlack,
	unordered: true,
	handovers: handovers,
	reentrant: true,
	also:      downgrade,
	parts:     kept.partsOf,
	meet:      kept.meet,
	whose:     kept.whose,
	choose:    func(k *worker) (path, mode string) { return k.choose(favourites) },
	usages:    kept,
	revocable: true,
	fewNodes:  true,
}

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

// kept has the locks that calls of each mode take. All but the plain ones keep their places.
var kept = usages{
	"lazy":        {[]part{{"/m", "lock"}}, true, 0, together},
	"second":      {[]part{{"/m", "lock"}}, true, 0, together},
	"handed":      {[]part{{"/m", "lock"}}, true, handovers, together},
	"plain":       {[]part{{"/m", "lock"}}, false, 0, ownership{}},
	"write":       {[]part{{"/r", "write"}}, true, 0, together},
	"read":        {[]part{{"/r", "read"}}, true, 0, together},
	"plain write": {[]part{{"/r", "write"}}, false, 0, ownership{}},
	"plain read":  {[]part{{"/r", "read"}}, false, 0, ownership{}},
	"both":        {[]part{{"/m", "lock"}, {"/r", "write"}}, true, 0, together},
}

// drawKept draws for how long places are kept. The values are whole milliseconds: see slot.
func drawKept(k kind, seed uint64) kind {
	k.keeps = k.usages.drawKeeps(seed)
	k.open = func(m *session.Manager, path string) (map[string]any, error) { return openKept(m, path, k.keeps) }
	return k
}

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

func openKept(m *session.Manager, path string, keeps map[string]time.Duration) (map[string]any, error) {
	b := builder{m: m, path: path}
	mutex := func(mode string, more ...zklock.Option) *zklock.Mutex {
		return b.mutex("/m", append(more, zklock.WithLazyRelease(keeps[mode]))...)
	}
	rw := b.rwlock("/r", rwlock.WithLazyRelease(keeps["read"]))
	plain := b.rwlock("/r")
	out := map[string]any{
		"lazy": mutex("lazy"), "second": mutex("second"), "handed": mutex("handed", zklock.WithLocalHandover(handovers)),
		"plain": b.mutex("/m"),
		"write": writer{rw}, "read": readLeases{rw},
		"plain write": writer{plain}, "plain read": plain.Reader(),
	}
	one, other := mutex("both"), b.rwlock("/r", rwlock.WithLazyRelease(keeps["both"]))
	if b.err != nil {
		return nil, b.err
	}
	both, err := zklock.Multi(one, other)
	out["both"] = both
	return out, err
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

// favourites are the modes that workers of one manager use at their own path.
var favourites = [][]string{{"lazy"}, {"lazy"}, {"handed"}, {"read"}, {"read", "read", "read", "write"}, {"write"}, {"both"}}

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

// homes returns the paths of a seed, one for each manager.
func homes(n int) (out []string) {
	for i := range n {
		out = append(out, "/locks/"+string(rune('a'+i)))
	}
	return out
}
