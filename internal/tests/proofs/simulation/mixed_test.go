package simulation

import (
	"slices"
	"strconv"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// All types of locks at once. Each has a directory, and they meet in a multi-lock. Now and then a
// call uses a lock of another type than the directory's.
var mixedKind = kind{
	name:      "mixed",
	modes:     mixed.modes(),
	modeOf:    typedMode,
	open:      openMixed,
	together:  mixedTogether,
	weight:    mixedWeight,
	slack:     mixedSlack,
	unordered: true,
	handovers: handovers,
	reentrant: true,
	also:      downgrade,
	parts:     mixed.partsOf,
	meet:      mixed.meet,
	whose:     mixed.whose,
	choose:    func(k *worker) (path, mode string) { return k.choose(mixedHabits) },
	limited:   func(path string) map[string]int { return map[string]int{path + "/s": leases} },
	revocable: true,
	hostile:   true,
}

// mixed has the locks that calls of each mode take.
var mixed = usages{
	"plain": {parts: []part{{"/m", "lock"}}},
	"local": {parts: []part{{"/m", "lock"}}, ownership: together},
	"do":    {parts: []part{{"/m", "lock"}}, ownership: ownership{shared: true}},
	"all":   {parts: []part{{"/m", "lock"}, {"/r", "write"}, {"/s", "1"}}, ownership: together},
	"write": {parts: []part{{"/r", "write"}}},
	"read":  {parts: []part{{"/r", "read"}}},
	"1":     {parts: []part{{"/s", "1"}}},
	"2":     {parts: []part{{"/s", "2"}}},
	"3":     {parts: []part{{"/s", "3"}}},
	// These are of the wrong type for their directory.
	"reader at the mutex":    {parts: []part{{"/m", "read"}}},
	"mutex at the semaphore": {parts: []part{{"/s", "lock"}}},
	"lease at the rwlock":    {parts: []part{{"/r", "1"}}},
}

// mixedHabits are the modes that workers of one manager use most of the time.
var mixedHabits = [][]string{
	{"plain", "local", "all", "read", "1"}, {"local", "do", "all", "write", "2"}, {"all", "write", "read", "1", "3"},
}

func below(path string, parts []part) []part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].dir = path + out[i].dir
	}
	return out
}

// typedMode tells a contender's mode, of any type of lock.
func typedMode(n queue.Node) string {
	switch n.Prefix {
	case queue.PrefixRead:
		return "read"
	case queue.PrefixWrite:
		return "write"
	case queue.PrefixLease:
		return strconv.Itoa(n.Weight)
	}
	return "lock"
}

// typeOf is the type of lock that a mode of a contender belongs to.
func typeOf(mode string) string {
	switch {
	case isCount(mode):
		return "semaphore"
	case mode == "write":
		return "read"
	}
	return mode
}

// mixedWeight is the weight of a contender ahead for another. A contender of another type gets no
// lock, and soon leaves.
func mixedWeight(ahead, me string) int {
	switch {
	case typeOf(ahead) != typeOf(me), ahead == "read" && me == "read":
		return 0
	case isCount(ahead):
		return atoi(ahead)
	}
	return 1
}

func mixedSlack(me string) int {
	if isCount(me) {
		return leases - atoi(me)
	}
	return 0
}

// mixedTogether reports whether a directory's lock may be held in all of these ways at once.
func mixedTogether(all []inside) bool {
	for _, i := range all {
		if typeOf(i.mode) != typeOf(all[0].mode) {
			return false
		}
	}
	switch {
	case len(all) < 2:
		return true
	case isCount(all[0].mode):
		return all[0].grant.limit > 0 && withinLimit(all) || all[0].grant.limit == 0 && atMostLeases(all)
	case typeOf(all[0].mode) == "read":
		return rwlockKind.together(all)
	}
	return false
}

func openMixed(m *session.Manager, path string) (map[string]any, error) {
	b := builder{m: m, path: path}
	local := b.mutex("/m", zklock.WithLocalHandover(handovers))
	sem, rw := b.semaphore("/s"), b.rwlock("/r")
	out := map[string]any{
		"plain": b.mutex("/m"), "local": local, "do": doer{b.mutex("/m")},
		"write": writer{rw}, "read": rw.Reader(),
		"1": sem, "2": several{sem, 2}, "3": several{sem, 3},
		"reader at the mutex":    b.rwlock("/m").Reader(),
		"mutex at the semaphore": b.mutex("/s"), "lease at the rwlock": b.semaphore("/r"),
	}
	if b.err != nil {
		return nil, b.err
	}
	all, err := zklock.Multi(sem, local, rw)
	out["all"] = all
	return out, err
}

// builder makes locks below a path, and keeps the first error.
type builder struct {
	m    *session.Manager
	path string
	err  error
}

func (b *builder) failed(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) mutex(dir string, opts ...zklock.Option) *zklock.Mutex {
	mx, err := zklock.New(b.m, b.path+dir, opts...)
	b.failed(err)
	return mx
}

func (b *builder) semaphore(dir string, opts ...semaphore.Option) *semaphore.Semaphore {
	s, err := semaphore.New(b.m, b.path+dir, leases, opts...)
	b.failed(err)
	return s
}

func (b *builder) rwlock(dir string, opts ...rwlock.Option) *rwlock.RWMutex {
	rw, err := rwlock.New(b.m, b.path+dir, opts...)
	b.failed(err)
	return rw
}
