package simulation

import (
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// All that locks do for each other in one process, on a few paths: mutexes that keep their places, hand over within the
// process, both or neither, an RWMutex with both of its sides, a semaphore whose limit changes, and four MultiLocks
// across them. Two of the mutexes and another RWMutex are keys of a Keyed. In some worlds the servers insist on SASL.
// Sessions have few nodes, counters are near their end, and functions of a Do panic. Each path has one type of lock, so a
// conflict is never expected.
var everythingKind = kind{
	name:      "everything",
	modes:     everything.modes(),
	modeOf:    typedMode,
	drawn:     drawEverything,
	together:  mixedTogether,
	weight:    mixedWeight,
	slack:     mixedSlack,
	unordered: true,
	handovers: handovers,
	reentrant: true,
	also:      downgrade,
	parts:     everything.partsOf,
	meet:      everything.meet,
	whose:     everything.whose,
	choose:    func(k *worker) (path, mode string) { return k.choose(habits) },
	usages:    everything,
	limited:   func(path string) map[string]int { return map[string]int{path + "/s": leases} },
	revocable: true,
	hostile:   true,
	asyncs:    []string{"handed", "do", "plain", "plain write", "plain read", "1", "pair"},
}

// everything has the locks that calls of each mode take.
var everything = usages{
	"lazy":        {[]part{{"/m", "lock"}}, true, 0, together},
	"handed":      {[]part{{"/m", "lock"}}, true, handovers, together},
	"local":       {[]part{{"/m", "lock"}}, false, handovers, together},
	"do":          {[]part{{"/m", "lock"}}, true, 0, together},
	"plain":       {[]part{{"/m", "lock"}}, false, 0, ownership{}},
	"write":       {[]part{{"/r", "write"}}, true, 0, together},
	"read":        {[]part{{"/r", "read"}}, true, 0, together},
	"plain write": {[]part{{"/r", "write"}}, false, 0, ownership{}},
	"plain read":  {[]part{{"/r", "read"}}, false, 0, ownership{}},
	"key write":   {[]part{{"/r", "write"}}, true, 0, together},
	"key read":    {[]part{{"/r", "read"}}, true, 0, together},
	"1":           {[]part{{"/s", "1"}}, false, 0, ownership{}},
	"2":           {[]part{{"/s", "2"}}, false, 0, ownership{}},
	"3":           {[]part{{"/s", "3"}}, false, 0, ownership{}},
	// The MultiLocks.
	"both":  {[]part{{"/m", "lock"}, {"/r", "write"}}, true, 0, together},
	"reads": {[]part{{"/m", "lock"}, {"/r", "read"}}, true, handovers, together},
	"all":   {[]part{{"/m", "lock"}, {"/r", "write"}, {"/s", "1"}}, true, handovers, together},
	"pair":  {[]part{{"/r", "read"}, {"/s", "1"}}, false, 0, ownership{}},
}

// habits are the modes that workers of one manager use most of the time. A place is used again only if they stay with
// its lock.
var habits = [][]string{
	{"lazy"}, {"lazy", "handed"}, {"handed"}, {"local", "lazy"}, {"do"}, {"do", "both"}, {"read", "read", "read", "write"},
	{"key read", "key read", "key write"}, {"key read", "read", "key write"},
	{"read", "reads"}, {"write", "both"}, {"both"}, {"all"}, {"all", "lazy"}, {"pair", "read", "1"},
}

func drawEverything(k kind, seed uint64) kind {
	k.keeps = k.usages.drawKeeps(seed)
	k.open = func(m *session.Manager, path string) (map[string]any, error) { return openEverything(m, path, k) }
	k.sasl = seed%4 == 3
	return k
}

func openEverything(m *session.Manager, path string, k kind) (map[string]any, error) {
	b := builder{m: m, path: path}
	options := func(mode string) []zklock.Option {
		var opts []zklock.Option
		if u := k.usages[mode]; u.most > 0 {
			opts = append(opts, zklock.WithLocalHandover(u.most))
		}
		if d := k.keeps[mode]; d > 0 {
			opts = append(opts, zklock.WithLazyRelease(d))
		}
		if k.async(mode) {
			opts = append(opts, zklock.WithAsyncRelease())
		}
		return opts
	}
	mutex := func(mode string) *zklock.Mutex { return b.mutex("/m", options(mode)...) }
	lazy := func(mode string) *rwlock.RWMutex {
		return b.rwlock("/r", rwlock.WithLazyRelease(k.keeps[mode]))
	}
	rw, plain := lazy("read"), b.rwlock("/r", rwlock.WithAsyncRelease())
	rwKey := b.rwKey("r", rwlock.WithLazyRelease(k.keeps["key read"]))
	sem := b.semaphore("/s", semaphore.WithAsyncRelease())
	out := map[string]any{
		"lazy": mutex("lazy"), "handed": b.key("m", options("handed")...), "local": mutex("local"),
		"do":    doer{b.key("m", options("do")...)},
		"plain": mutex("plain"),
		"write": writer{rw}, "read": readLeases{rw}, "plain write": writer{plain}, "plain read": plain.Reader(),
		"key write": keyWriter{rwKey}, "key read": keyReader{rwKey},
		"1": sem, "2": several{sem, 2}, "3": several{sem, 3},
	}
	b.multi(out, "both", mutex("both"), lazy("both"))
	b.multi(out, "reads", lazy("reads").Reader(), mutex("reads"))
	b.multi(out, "all", sem, mutex("all"), plain)
	b.multi(out, "pair", sem, plain.Reader())
	if b.err != nil {
		return nil, b.err
	}
	out["all"] = doer{out["all"].(*zklock.MultiLock)}
	return out, nil
}

// multi makes the MultiLock of a mode.
func (b *builder) multi(out map[string]any, mode string, locks ...zklock.ContextLocker) {
	if b.err != nil {
		return
	}
	m, err := zklock.Multi(locks...)
	b.failed(err)
	out[mode] = m
}
