package simulation

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/queue"
)

// kind is a world of locks, and what is usual there.
type kind struct {
	name   string
	usages usages   // what calls take, by mode
	modes  []string // draws a mode; each call has one
	// habits are the modes that workers of one manager use most of the time, where a path has locks of several types. A
	// place is used again only if they stay with its lock.
	habits [][]string
	// unordered says that there is no order of arrival: several queues, or places that are handed over.
	unordered bool
	// handovers is how often, at most, workers of a manager hand over a node that is held. They
	// have one lock object then, and one node at a time. 0: each worker has its own node.
	handovers int
	shared    bool // workers of a manager may use one lock object, which knows the owner of each hold
	reentrant bool // WithOwner works on it
	resized   bool // workers change the limit of semaphores
	revocable bool // a holder gives up its lease when it is asked to
	// hostile says that functions of a Do panic, that sessions have few nodes, and that workers that hold
	// nothing call Unlock.
	hostile  bool
	curator  bool // the semaphore is that of Curator
	election bool // there are candidates, and observers, which are compared with the server
}

// usage is what calls of one mode take, and how.
type usage struct {
	parts []part // below the path
	ownership
	lazy  bool // places are kept
	most  int  // hand-overs in a place, from when another contender has come
	async bool // Unlock waits for no server
	keyed bool // it is a key of a Keyed
	do    bool // it is taken by Do alone
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

var together = ownership{shared: true, perCall: true}

// usages has the usage of each mode.
type usages map[string]usage

// modes returns the modes in order: maps have none, and seeds draw by number.
func (all usages) modes() []string { return slices.Sorted(maps.Keys(all)) }

// Parts: a lock by itself, and the mutex, the RWMutex and the semaphore that are below one path.
func alone(mode string) usage { return usage{parts: []part{{"", mode}}} }

var (
	mutex, write, read = part{"/m", "lock"}, part{"/r", "write"}, part{"/r", "read"}
	lease              = part{"/s", "1"}
)

// handovers is small, so that turns end in both ways.
const handovers = 2

// leases is how many a semaphore has.
const leases = 3

var units = usages{"1": alone("1"), "2": alone("2"), "3": alone("3")}

var kinds = []kind{
	{name: "mutex", usages: usages{"lock": alone("lock")}, modes: []string{"lock"}, shared: true, reentrant: true},
	{
		name: "rwlock", usages: usages{"write": alone("write"), "read": alone("read")}, modes: []string{"write", "read", "read"},
		reentrant: true,
	},
	{name: "semaphore", usages: units, modes: []string{"1", "1", "2", "3"}},
	// The layout of Curator has a mutex before the leases.
	{name: "curator", usages: usages{"1": {parts: []part{{"/leases", "1"}}}}, modes: []string{"1"}, unordered: true, curator: true},
	// The semaphore whose limit is raised and lowered all the time.
	{name: "resized", usages: units, modes: []string{"1", "1", "1", "2", "3"}, resized: true, revocable: true},
	// All types of locks at once. Each has a directory, and they meet in a multi-lock. Now and then a
	// call uses a lock of another type than the directory's.
	several("mixed", mixed, [][]string{
		{"plain", "local", "all", "read", "1"}, {"local", "do", "all", "write", "2"}, {"all", "write", "read", "1", "3"},
	}),
	// Candidates lead, resign and are asked to resign, and observers follow who leads.
	{
		name: "election", usages: usages{"lead": alone("lock"), "observe": alone("lock")}, modes: []string{"lead", "lead", "observe"},
		revocable: true, election: true,
	},
	// All that locks do for each other in one process, on a few paths: mutexes that keep their places, hand over within the
	// process, both or neither, an RWMutex with both of its sides, a semaphore whose limit changes, and four MultiLocks
	// across them. Two of the mutexes are keys of a Keyed. In some worlds the servers insist on SASL.
	// Sessions have few nodes, counters are near their end, and functions of a Do panic. Each path has one type of lock, so a
	// conflict is never expected.
	several("everything", everything, [][]string{
		{"lazy"}, {"lazy", "handed"}, {"handed"}, {"local", "lazy"}, {"do"}, {"do", "both"}, {"read", "read", "read", "write"},
		{"read", "reads"}, {"write", "both"}, {"both"}, {"all"}, {"all", "lazy"}, {"pair", "read", "1"},
	}),
}

// several is a kind whose paths have locks of several types.
func several(name string, all usages, habits [][]string) kind {
	return kind{
		name: name, usages: all, modes: all.modes(), habits: habits, unordered: true, handovers: handovers,
		reentrant: true, resized: true, revocable: true, hostile: true,
	}
}

var mixed = usages{
	"plain": {parts: []part{mutex}},
	"local": {parts: []part{mutex}, ownership: together, most: handovers},
	"do":    {parts: []part{mutex}, ownership: ownership{shared: true}, do: true},
	"all":   {parts: []part{mutex, write, lease}, ownership: together, most: handovers},
	"write": {parts: []part{write}},
	"read":  {parts: []part{read}},
	"1":     {parts: []part{lease}},
	"2":     {parts: []part{{"/s", "2"}}},
	"3":     {parts: []part{{"/s", "3"}}},
	// These are of the wrong type for their directory.
	"reader at the mutex":    {parts: []part{{"/m", "read"}}},
	"mutex at the semaphore": {parts: []part{{"/s", "lock"}}},
	"lease at the rwlock":    {parts: []part{{"/r", "1"}}},
}

var everything = usages{
	"lazy":        {parts: []part{mutex}, lazy: true, ownership: together},
	"handed":      {parts: []part{mutex}, lazy: true, most: handovers, ownership: together, async: true, keyed: true},
	"local":       {parts: []part{mutex}, most: handovers, ownership: together},
	"do":          {parts: []part{mutex}, lazy: true, ownership: together, async: true, keyed: true, do: true},
	"plain":       {parts: []part{mutex}, async: true},
	"write":       {parts: []part{write}, lazy: true, ownership: together},
	"read":        {parts: []part{read}, lazy: true, ownership: together},
	"plain write": {parts: []part{write}, async: true},
	"plain read":  {parts: []part{read}, async: true},
	"1":           {parts: []part{lease}, async: true},
	"2":           {parts: []part{{"/s", "2"}}},
	"3":           {parts: []part{{"/s", "3"}}},
	// The MultiLocks.
	"both":  {parts: []part{mutex, write}, lazy: true, ownership: together},
	"reads": {parts: []part{mutex, read}, lazy: true, most: handovers, ownership: together},
	"all":   {parts: []part{mutex, write, lease}, lazy: true, most: handovers, ownership: together, do: true},
	"pair":  {parts: []part{read, lease}, async: true},
}

// drawKeeps draws for how long places are kept, by mode; nil if none is. The values are whole milliseconds: see slot.
func (all usages) drawKeeps(seed uint64) (keeps map[string]time.Duration) {
	for mode, how := range all {
		if !how.lazy {
			continue
		}
		h := mix(seed, "keep", side(mode))
		most := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, 10 * time.Second}[h%5]
		if keeps == nil {
			keeps = make(map[string]time.Duration)
		}
		keeps[mode] = between(h>>8, time.Millisecond, most).Truncate(time.Millisecond)
	}
	return keeps
}

// side is a mode without its side of an RWMutex: both sides have one object, and its options.
func side(mode string) string { return strings.Replace(mode, "write", "read", 1) }

// draw draws the path and the mode of a worker's next call.
func (k kind) draw(w *world, party int, rng *rand.Rand) (path, mode string) {
	visits := []int{3, 10, 30}[mix(w.seed, "visits")%3]
	if k.habits == nil || rng.IntN(visits) == 0 {
		return w.plan.paths[rng.IntN(len(w.plan.paths))], k.modes[rng.IntN(len(k.modes))]
	}
	mine := k.habits[mix(w.seed, "favourite", party)%uint64(len(k.habits))]
	return w.plan.paths[(party-firstManager)%len(w.plan.paths)], mine[rng.IntN(len(mine))]
}

// partsOf returns the directories in which a call takes something, and what it takes there.
func (k kind) partsOf(c *call) []part { return k.below(c.path, c.mode) }

func (k kind) below(path, mode string) []part {
	out := slices.Clone(k.usages[mode].parts)
	for i := range out {
		out[i].dir = path + out[i].dir
	}
	return out
}

// dirs returns the directories below a path in which calls take something; with counts, only those of semaphores.
func (k kind) dirs(path string, counts bool) (out []string) {
	for mode := range k.usages {
		for _, p := range k.below(path, mode) {
			if isCount(p.mode) && mode == p.mode || !counts {
				out = append(out, p.dir)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// What follows are the rules of all locks, written independently of the library.

// modeOf tells a contender's mode.
func modeOf(n queue.Node) string {
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

func isCount(mode string) bool { return mode != "" && mode[0] >= '0' && mode[0] <= '9' }

// atoi reads a mode that is a number.
func atoi(mode string) int {
	n, err := strconv.Atoi(mode)
	if err != nil {
		panic(err)
	}
	return n
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

// weight is the weight of a contender ahead for another. A contender of another type gets no
// lock, and soon leaves.
func weight(ahead, me string) int {
	switch {
	case typeOf(ahead) != typeOf(me), ahead == "read" && me == "read":
		return 0
	case isCount(ahead):
		return atoi(ahead)
	}
	return 1
}

// weightOf is the weight of one call for another.
func (k kind) weightOf(ahead, me *call) (most int) {
	for _, p := range k.partsOf(ahead) {
		for _, q := range k.partsOf(me) {
			switch {
			case p.dir != q.dir:
			case typeOf(p.mode) != typeOf(q.mode): // one of them conflicts
				most = max(most, 1)
			default:
				most = max(most, weight(p.mode, q.mode))
			}
		}
	}
	return most
}

// slack is how much may be ahead of a contender that gets the lock.
func slack(me string) int {
	if isCount(me) {
		return leases - atoi(me)
	}
	return 0
}

// inside is a holder of a lock.
type inside struct {
	mode  string
	who   *worker
	grant grantInfo
}

// mayHold reports whether a lock may be held in all of these ways at once.
func mayHold(all []inside) bool {
	sum, last, limit := 0, 0, 0 // of leases, and the limit under which the last of them was let in
	var writers []*worker
	for _, i := range all {
		switch {
		case typeOf(i.mode) != typeOf(all[0].mode), i.mode == "lock" && len(all) > 1:
			return false
		case i.mode == "write":
			writers = append(writers, i.who)
		case isCount(i.mode):
			sum += atoi(i.mode)
			if i.grant.order > last {
				last, limit = i.grant.order, i.grant.limit
			}
		}
	}
	if limit == 0 {
		limit = leases // nobody changes it
	}
	return sum <= limit && (len(writers) == 0 || len(writers) == 1 &&
		!slices.ContainsFunc(all, func(i inside) bool { return i.who != writers[0] }))
}
