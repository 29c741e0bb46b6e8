package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
)

// The explorer drives Decide and Look through every schedule of a small world. A few contenders create, list, decide,
// watch, hear and go. Listings and the answers to watches are as old as they may be, events of one connection come in
// order, connections break, an operator deletes nodes and changes data, and writers go on as readers.

// stage is how far a contender has come.
type stage byte

const (
	outside stage = iota
	entered       // it has a node, and has to list
	listed        // it has a listing, of a moment that may have passed
	onWatch       // it sets its watches, one after another, its own first; then it waits
	holding
	over
)

// actor is one contender. Its node, and that of the reader that it may become, are bits of a listing: 1<<2i and 2<<2i.
type actor struct {
	stage    stage
	prefix   string
	weight   int
	sequence int32
	node     bool // on the server
	reader   bool // on the server too: the holder goes on as a reader
	listing  uint // what it has listed
	v        *verdict
	set      int // so many watches are set: the own, then those of the verdict
	seen     []session.WatchEvent
	stream   []event // what the server has sent, and the contender has not heard
	armed    []bool  // watches that the server has not used up
	robbed   bool    // its node was deleted while somebody was in its way
	astray   bool    // it has gone all the same
}

// verdict is what a listing says to an actor: it follows from the listing, so key need not tell it.
type verdict struct {
	Verdict
	slack int
	on    []uint // the nodes that it watches: its own, then those of the verdict
}

type event struct {
	watch int
	what  session.WatchEvent // WatchPending: the answer that the node is there
}

// world is a state. Actors are values, so that a step works on a copy.
type world struct {
	kind   *Kind
	policy func(Node) Policy
	fits   func(w *world) bool // whether the holders may hold together
	actors []actor
	next   int32

	breaks, deletes, changes int // of these are left
}

func (w *world) clone() *world {
	c := *w
	c.actors = slices.Clone(w.actors)
	for i := range c.actors {
		a := &c.actors[i]
		a.seen, a.stream, a.armed = slices.Clone(a.seen), slices.Clone(a.stream), slices.Clone(a.armed)
	}
	return &c
}

// key tells states apart.
func (w *world) key() string {
	var b strings.Builder
	fmt.Fprint(&b, w.next, w.breaks, w.deletes, w.changes)
	for i := range w.actors {
		a := &w.actors[i]
		fmt.Fprint(&b, "|", a.stage, a.sequence, a.node, a.reader, a.listing, a.set, a.seen, a.stream, a.armed, a.robbed, a.astray)
	}
	return b.String()
}

// nodeOf returns the node of an actor, or that of the reader that it becomes.
func (w *world) nodeOf(i int, reader bool) Node {
	a := &w.actors[i]
	prefix, id := a.prefix, fmt.Sprint("w", i)
	if reader {
		prefix, id = PrefixRead, fmt.Sprint("r", i)
	}
	name := fmt.Sprintf("%s%010d", NodeName(id, prefix, a.weight, false), a.sequence)
	n, ok := ParseNode(name)
	if !ok {
		panic(name)
	}
	return n
}

func bit(i int, reader bool) uint {
	if reader {
		return 2 << (2 * i)
	}
	return 1 << (2 * i)
}

// present returns the listing of this moment.
func (w *world) present() (all uint) {
	for i, a := range w.actors {
		if a.node {
			all |= bit(i, false)
		}
		if a.reader {
			all |= bit(i, true)
		}
	}
	return all
}

func (w *world) names(listing uint) (names []string) {
	for i := range w.actors {
		for _, reader := range []bool{false, true} {
			if listing&bit(i, reader) != 0 {
				names = append(names, w.nodeOf(i, reader).Name)
			}
		}
	}
	return names
}

// decide returns what an actor's listing says to it.
func (w *world) decide(i int) *verdict {
	me := w.nodeOf(i, false)
	p := w.policy(me)
	v := &verdict{Decide(w.kind, p, me, w.names(w.actors[i].listing)), p.Slack, []uint{bit(i, false)}}
	for _, b := range v.Watch {
		for j := range w.actors {
			for _, reader := range []bool{false, true} {
				if w.nodeOf(j, reader).Name == b.Node.Name {
					v.on = append(v.on, bit(j, reader))
				}
			}
		}
	}
	return v
}

// step is one that a world can take.
type step struct {
	name string
	free bool // it comes from outside: nobody waits for it
	do   func(*world)
}

func (w *world) steps() (all []step) {
	add := func(name string, i int, free bool, do func(w *world, a *actor)) {
		all = append(all, step{fmt.Sprint(name, i), free, func(w *world) { do(w, &w.actors[i]) }})
	}
	for i := range w.actors {
		a := &w.actors[i]
		switch a.stage {
		case outside:
			if int(w.next) != i {
				continue // they come in this order, so a world says in which order its kinds come
			}
			add("create", i, true, func(w *world, a *actor) {
				a.stage, a.node, a.sequence = entered, true, w.next
				w.next++
			})
		case entered:
			add("list", i, false, func(w *world, a *actor) {
				if a.listing, a.stage = w.present(), listed; !a.node {
					a.stage = over // it was deleted
				}
			})
		case listed:
			add("decide", i, false, func(w *world, a *actor) {
				v := w.decide(i)
				if v.Go {
					a.forget(holding)
					return
				}
				a.stage, a.v = onWatch, v
				a.seen, a.armed = make([]session.WatchEvent, len(v.on)), make([]bool, len(v.on))
			})
		case onWatch:
			w.wait(i, add)
		case holding:
			add("release", i, true, func(w *world, a *actor) {
				a.stage = over
				w.remove(i, false)
				w.remove(i, true)
			})
			if a.prefix == PrefixWrite && a.node && !a.reader {
				add("reader beside", i, true, func(_ *world, a *actor) { a.reader = true })
			}
			if a.node && a.reader {
				add("writer leaves", i, true, func(w *world, _ *actor) { w.remove(i, false) })
			}
		}
		if a.stage == onWatch && w.breaks > 0 {
			add("break", i, true, func(w *world, a *actor) { w.breaks--; a.forget(entered) })
		}
		for _, reader := range []bool{false, true} {
			if (a.node && !reader || a.reader && reader) && w.deletes > 0 {
				add(fmt.Sprint("delete ", reader), i, true, func(w *world, _ *actor) { w.deletes--; w.remove(i, reader) })
			}
		}
		if a.node && w.changes > 0 {
			add("change", i, true, func(w *world, _ *actor) {
				w.changes--
				w.tell(bit(i, false), session.WatchChanged)
			})
		}
	}
	return all
}

// wait adds the steps of an actor that watches.
func (w *world) wait(i int, add func(string, int, bool, func(*world, *actor))) {
	a := &w.actors[i]
	if a.set < len(a.armed) {
		add("watch", i, false, func(w *world, a *actor) {
			if w.present()&a.v.on[a.set] != 0 {
				a.armed[a.set] = true
				a.stream = append(a.stream, event{a.set, session.WatchPending})
			} else {
				a.stream = append(a.stream, event{a.set, session.WatchDeleted})
			}
			a.set++
		})
	}
	if len(a.stream) > 0 {
		add("hear", i, false, func(_ *world, a *actor) {
			if e := a.stream[0]; e.what != session.WatchPending {
				a.seen[e.watch] = e.what
			}
			a.stream = a.stream[1:]
		})
	}
	answers := slices.ContainsFunc(a.stream, func(e event) bool { return e.what == session.WatchPending })
	if a.set < len(a.armed) || answers {
		return // the watches are set in one call, which returns once all are answered
	}
	switch Look(&a.v.Verdict, a.v.slack, a.seen[1:], a.seen[0]) {
	case Free:
		add("free", i, false, func(_ *world, a *actor) { a.forget(holding); a.astray = a.robbed })
	case Gone:
		add("gone", i, false, func(_ *world, a *actor) { a.forget(over) })
	case List:
		add("look again", i, false, func(_ *world, a *actor) { a.forget(entered) })
	}
}

// forget ends a wait.
func (a *actor) forget(next stage) {
	a.stage, a.listing, a.v, a.set, a.seen, a.stream, a.armed = next, 0, nil, 0, nil, nil, nil
}

// remove deletes a node, if it is there.
func (w *world) remove(i int, reader bool) {
	a := &w.actors[i]
	there := &a.node
	if reader {
		there = &a.reader
	}
	if *there {
		a.robbed = !reader && w.blocked(i)
		*there = false
		w.tell(bit(i, reader), session.WatchDeleted)
	}
}

// tell sends an event to all that watch a node.
func (w *world) tell(node uint, what session.WatchEvent) {
	for i := range w.actors {
		a := &w.actors[i]
		for watch := range a.armed {
			if a.armed[watch] && a.v.on[watch] == node {
				a.armed[watch] = false
				a.stream = append(a.stream, event{watch, what})
			}
		}
	}
}

// holders returns the actors that hold, and whose nodes nobody else has deleted.
func (w *world) holders(f func(i int, a *actor)) {
	for i := range w.actors {
		if a := &w.actors[i]; a.stage == holding && (a.node || a.reader) {
			f(i, a)
		}
	}
}

// stuck returns an actor that waits although nobody is in its way, in a world in which nothing happens any more but what
// comes from outside.
func (w *world) stuck() int {
	for i := range w.actors {
		if w.actors[i].stage != onWatch {
			continue
		}
		if !w.blocked(i) {
			return i
		}
	}
	return -1
}

// blocked reports whether somebody is in the way of an actor at this moment.
func (w *world) blocked(i int) bool {
	me, ahead := w.nodeOf(i, false), 0
	p := w.policy(me)
	for j := range w.actors {
		for _, reader := range []bool{false, true} {
			if n := w.nodeOf(j, reader); w.present()&bit(j, reader) != 0 && n.Sequence < me.Sequence {
				ahead += p.weigh(n)
			}
		}
	}
	return ahead > p.Slack
}

// explore returns how many states there are, and the schedule that leads to a wrong one.
func explore(w *world, most int) (states int, wrong string) {
	type visit struct {
		w      *world
		parent int
		by     string
	}
	all, known := []visit{{w, -1, ""}}, map[string]bool{w.key(): true}
	for at := 0; at < len(all) && at < most; at++ {
		w := all[at].w
		quiet, bad := true, ""
		steps := w.steps()
		for _, s := range steps {
			quiet = quiet && s.free
		}
		if !w.fits(w) {
			bad = "they hold together"
		} else if slices.ContainsFunc(w.actors, func(a actor) bool { return a.astray }) {
			bad = "one goes by an event that came after the end of its own node"
		} else if i := w.stuck(); quiet && i >= 0 {
			bad = fmt.Sprint("nobody wakes ", i)
		}
		if bad != "" {
			var way []string
			for i := at; i > 0; i = all[i].parent {
				way = append(way, all[i].by)
			}
			slices.Reverse(way)
			return len(all), bad + ": " + strings.Join(way, ", ")
		}
		for _, s := range steps {
			next := w.clone()
			s.do(next)
			if key := next.key(); !known[key] {
				known[key] = true
				all = append(all, visit{next, at, s.name})
			}
		}
		all[at].w = nil
	}
	return len(all), ""
}

// oneWriter lets one writer hold, or any number of readers.
func oneWriter(w *world) bool {
	writers, all := 0, 0
	w.holders(func(_ int, a *actor) {
		all++
		if a.node && a.prefix != PrefixRead {
			writers++
		}
	})
	return writers == 0 || all == 1
}

// limited lets leases of a weight be held together.
func limited(limit int) func(*world) bool {
	return func(w *world) bool {
		sum := 0
		w.holders(func(_ int, a *actor) { sum += a.weight })
		return sum <= limit
	}
}

func actors(prefix string, weights ...int) (all []actor) {
	for _, weight := range weights {
		all = append(all, actor{prefix: prefix, weight: weight})
	}
	return all
}

func readersAndWriters(prefixes ...string) (all []actor) {
	for _, prefix := range prefixes {
		all = append(all, actors(prefix, 1)...)
	}
	return all
}

// worlds returns small worlds in which each kind of lock can go wrong.
func worlds() map[string]*world {
	mutex := &Kind{Name: "mutex", Prefixes: []string{PrefixLock}, Policy: Mutex().Policy}
	rw := &Kind{Name: "rw", Prefixes: []string{PrefixRead, PrefixWrite}, Policy: readWrite}
	leases := func(n int) *Kind {
		return &Kind{Name: "semaphore", Prefixes: []string{PrefixLease}, Policy: func(me Node) Policy { return LeasePolicy(me, n) }}
	}
	const r, w = PrefixRead, PrefixWrite
	of := func(k *Kind, fits func(*world) bool, all []actor, breaks, deletes, changes int) *world {
		return &world{kind: k, policy: k.Policy, fits: fits, actors: all, breaks: breaks, deletes: deletes, changes: changes}
	}
	return map[string]*world{
		"mutex, deleted by hand":    of(mutex, oneWriter, actors(PrefixLock, 1, 1, 1), 0, 1, 0),
		"mutex, breaks and changes": of(mutex, oneWriter, actors(PrefixLock, 1, 1, 1), 1, 0, 1),
		"mutex, changed, deleted":   of(mutex, oneWriter, actors(PrefixLock, 1, 1), 0, 1, 1),
		"mutex of four":             of(mutex, oneWriter, actors(PrefixLock, 1, 1, 1, 1), 0, 0, 0),
		"w w r":                     of(rw, oneWriter, readersAndWriters(w, w, r), 1, 1, 0),
		"w w w":                     of(rw, oneWriter, readersAndWriters(w, w, w), 0, 1, 0),
		"w r w":                     of(rw, oneWriter, readersAndWriters(w, r, w), 0, 1, 0),
		"r r w":                     of(rw, oneWriter, readersAndWriters(r, r, w), 0, 1, 1),
		"r w r":                     of(rw, oneWriter, readersAndWriters(r, w, r), 1, 0, 0),
		"1 1 1 2 of 2":              of(leases(2), limited(2), actors(PrefixLease, 1, 1, 1, 2), 0, 0, 0),
		"2 1 1 of 2":                of(leases(2), limited(2), actors(PrefixLease, 2, 1, 1), 1, 1, 0),
		"1 2 1 1 of 2":              of(leases(2), limited(2), actors(PrefixLease, 1, 2, 1, 1), 0, 0, 0),
		"1 1 1 1 of 1":              of(leases(1), limited(1), actors(PrefixLease, 1, 1, 1, 1), 0, 0, 0),
	}
}

func TestExplore(t *testing.T) {
	for name, w := range worlds() {
		t.Run(name, func(t *testing.T) {
			if len(w.actors) > 3 || w.breaks+w.deletes > 1 || name == "w w w" || name == "w r w" {
				longtest.Only(t) // the larger worlds take seconds, and ten times as long with the race detector
			}
			states, wrong := explore(w, 400_000)
			longtest.Covered(t, "%d states", states)
			if wrong != "" {
				t.Error(wrong)
			}
		})
	}
}
