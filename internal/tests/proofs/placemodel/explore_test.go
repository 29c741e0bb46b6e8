package placemodel

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/turnstile-go/turnstile/kinds"
)

// explorer visits each state of a world once, the nearest first, so that a counterexample is as short as can
// be. It tells states apart by a hash of 64 bits: with ten million states, the chance that it takes two for
// one is one in 300,000.
type explorer struct {
	*model
	seed   maphash.Seed
	index  map[uint64]int32
	parent []int32  // the state from which a state was found first
	choice []uint16 // the number of the move that led there
	goals  []goal   // of each state
	first  []int32  // the first of its edges
	edges  []edge
	buffer []move

	wrong string // what was broken
	where int32  // in the move from this state
	which uint16
}

// goal says what a state has achieved.
type goal uint8

const (
	allServed goal = 1 << iota // all callers have got what they wanted, or have given up
	allEmpty                   // and no node is left
)

// edge is a move to a state, with its class in the lowest bits.
type edge uint32

func edgeTo(at int32, c class) edge { return edge(at)<<2 | edge(c) }

func (e edge) to() int32    { return int32(e >> 2) }
func (e edge) class() class { return class(e & 3) }

// start returns the first state of a model.
func (m *model) start() world {
	w := world{faults: m.may}
	for i := range w.clients {
		w.clients[i].turn, w.clients[i].peer = none, none
	}
	for i := range w.calls {
		w.calls[i].phase = done
	}
	for i := range m.programs {
		w.calls[i] = call{rounds: m.programs[i].rounds}
	}
	return w
}

// explore visits all states, or as many as it takes to find that something is wrong.
func explore(m *model) *explorer {
	m.named, m.known = map[nodeKey]kinds.Node{}, map[ruleKey]known{}
	x := &explorer{model: m, seed: maphash.MakeSeed(), index: map[uint64]int32{}}
	w := m.start()
	m.canonical(&w)
	x.add(&w, none, 0)
	level := []world{w}
	for at := int32(0); len(level) > 0; {
		var next []world
		for i := range level {
			x.visit(at, &level[i], &next)
			if at++; x.wrong != "" {
				return x
			}
		}
		level = next
	}
	x.first = append(x.first, int32(len(x.edges)))
	x.check(allServed, must, "a caller waits for nothing")
	x.check(allEmpty, patience, "a node stays for ever")
	return x
}

// add takes note of a state. It returns false if it was known.
func (x *explorer) add(w *world, parent int32, choice uint16) (at int32, fresh bool) {
	key := maphash.Comparable(x.seed, *w)
	if at, known := x.index[key]; known {
		return at, false
	}
	at = int32(len(x.parent))
	x.index[key] = at
	x.parent, x.choice = append(x.parent, parent), append(x.choice, choice)
	var g goal
	if x.served(w) {
		if g |= allServed; w.empty() {
			g |= allEmpty
		}
	}
	x.goals = append(x.goals, g)
	return at, true
}

// visit makes all moves of a state.
func (x *explorer) visit(at int32, w *world, next *[]world) {
	x.first = append(x.first, int32(len(x.edges)))
	x.buffer = x.moves(w, x.buffer[:0])
	for i, m := range x.buffer {
		after := *w
		if wrong := x.make(&after, m, nil); wrong != "" {
			x.wrong, x.where, x.which = wrong, at, uint16(i)
			return
		}
		to, fresh := x.add(&after, at, uint16(i))
		if x.edges = append(x.edges, edgeTo(to, m.class)); fresh {
			*next = append(*next, after)
		}
	}
}

// make makes a move, and says what it has broken.
func (m *model) make(w *world, one move, say func(string, ...any)) string {
	r := run{model: m, world: w, say: say}
	if one.fault != none {
		w.faults[one.fault]--
	}
	one.do(&r, one.i)
	if r.wrong == "" {
		r.check()
	}
	if r.wrong == "" {
		m.canonical(w)
	}
	return r.wrong
}

// check checks that a goal can be reached from each state by moves up to a class, whatever has happened
// before.
func (x *explorer) check(g goal, most class, otherwise string) {
	if x.wrong != "" {
		return
	}
	n := len(x.parent)
	// How many edges lead to the states before a state, and then where its own are.
	before := make([]int32, n+2)
	for _, e := range x.edges {
		if e.class() <= most {
			before[e.to()+2]++
		}
	}
	for i := range n {
		before[i+2] += before[i+1]
	}
	from := make([]int32, before[n+1])
	for at := range int32(n) {
		for _, e := range x.edges[x.first[at]:x.first[at+1]] {
			if e.class() <= most {
				from[before[e.to()+1]] = at
				before[e.to()+1]++
			}
		}
	}
	reaches := make([]bool, n)
	var todo []int32
	note := func(at int32) {
		if !reaches[at] {
			reaches[at] = true
			todo = append(todo, at)
		}
	}
	for at, has := range x.goals {
		if has&g != 0 {
			note(int32(at))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, one := range from[before[at]:before[at+1]] {
			note(one)
		}
	}
	for at, ok := range reaches {
		if !ok {
			x.wrong, x.where, x.which = otherwise, x.parent[at], x.choice[at]
			return
		}
	}
}

// schedule returns the way to what was broken, as a person can read it.
func (x *explorer) schedule() string {
	path := []uint16{x.which}
	for at := x.where; at > 0; at = x.parent[at] {
		path = append(path, x.choice[at])
	}
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "    "+format+"\n", args...) }
	w := x.start()
	x.canonical(&w)
	for i := len(path) - 1; i >= 0; i-- {
		x.make(&w, x.moves(&w, nil)[path[i]], say)
	}
	say("so %s", x.wrong)
	return b.String()
}
