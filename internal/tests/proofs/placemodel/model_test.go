package placemodel

import (
	"fmt"
	"strings"

	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// model is what does not change in a world: which lock each caller wants, the rules, and the names of nodes.
type model struct {
	name     string
	size     int8 // how many clients
	programs []caller
	sorts    []sort
	may      [kindsOfFaults]int8
	lag      int8           // how many transactions a server is behind when the leader carries out another
	local    *localRules    // nil if no client has a Local
	configs  []kinds.Config // of the directory, one after the other, if the kind has them
	limits   []int          // that these set
	early    bool           // callers begin before the limit changes
	rules    rules

	named map[nodeKey]kinds.Node
	known map[ruleKey]known
}

// caller is the program of a call.
type caller struct {
	client int8
	wants  []want // one after the other
	joint  bool   // by one transaction, if that is possible
	down   int8   // downgrades to a node of this sort; 0: does not
	local  bool   // by way of its client's Local
	rounds int8   // how often
}

type want struct{ dir, sort int8 }

// sort is a kind of node that contenders of a kind of lock make.
type sort struct {
	kind   *kinds.Kind
	prefix string
	weight int
	word   string // for schedules
	shared bool   // contenders of this sort do not exclude each other
}

// rules are the real code, and what a broken variant changes.
type rules struct {
	step func(decide.State, decide.Input) (decide.Move, bool)
	read func(c *decide.Contender, names []string) decide.Listing
	see  func(rest int, t []decide.Blocker, s []decide.Sight, own decide.Event, again bool,
		slack int) decide.Input

	// Of package place, of package core and of the servers. All are false for the real ones.
	noSync, noSweep, staysBehind, missesGone, noOwn, noOwnAnswer, dropsEvents bool
	expiresFirst, lateAfterSweep, keepsBlind, keepsCrowded, forgetsBroken     bool
	apart, noOutdated, noBehind, standsInAll                                  bool
}

func realRules() rules {
	return rules{step: decide.Step, read: (*decide.Contender).Read, see: decide.BySight}
}

type nodeKey struct{ client, id, dir, sort, seq int8 }

type ruleKey struct {
	nodeKey
	era int8
}

type known struct {
	rule decide.Rule
	err  error
}

// nodeOf returns a node as its name tells.
func (m *model) nodeOf(n *node) kinds.Node {
	key := nodeKey{n.client, n.id, n.dir, n.sort, n.seq}
	if k, ok := m.named[key]; ok {
		return k
	}
	s := m.sorts[n.sort]
	id := fmt.Sprintf("%c%d", 'a'+n.client, n.id)
	name := fmt.Sprintf("%s%010d", kinds.NodeName(id, s.prefix, s.weight, m.lazy(n.client)), n.seq)
	k, ok := kinds.ParseNode(name, s.kind.Prefixes...)
	if !ok || k.ID != id {
		panic("no name of a contender: " + name)
	}
	m.named[key] = k
	return k
}

// czxid returns the transaction that has made a node, as far as it matters: configurations come before or
// after it.
func (m *model) czxid(era int8) int64 {
	if len(m.configs) == 0 {
		return 1
	}
	return m.configs[era].Changed + 1
}

// run is one move in a world.
type run struct {
	*model
	*world
	say    func(format string, args ...any) // nil unless a schedule is printed
	wrong  string                           // what must never be
	waited bool                             // the place that hears something waited
}

func (r *run) tell(format string, args ...any) {
	if r.say != nil {
		r.say(format, args...)
	}
}

func (r *run) fail(format string, args ...any) {
	if r.wrong == "" {
		r.wrong = fmt.Sprintf(format, args...)
	}
}

// seen returns the nodes of a directory that the server of a client shows.
func (w *world) seen(c, dir int8) uint16 {
	var in uint16
	for i := range w.nodes {
		if n := &w.nodes[i]; n.used && n.inBase {
			in |= 1 << i
		}
	}
	for _, e := range w.log[:w.clients[c].view] {
		switch e.what {
		case made:
			in |= 1 << e.node
		case gone:
			in &^= 1 << e.node
		}
	}
	for i := range w.nodes {
		if w.nodes[i].dir != dir {
			in &^= 1 << i
		}
	}
	return in
}

// eraOf returns how many configurations the server of a client has.
func (w *world) eraOf(c int8) int8 {
	era := w.baseEra
	for _, e := range w.log[:w.clients[c].view] {
		if e.what == configured {
			era++
		}
	}
	return era
}

func (w *world) put(e entry) {
	if w.length == maxLog {
		panic("the log is full")
	}
	w.log[w.length] = e
	w.length++
}

// names returns the names of nodes.
func (r *run) names(in uint16) []string {
	var out []string
	for i := range r.world.nodes {
		if in>>i&1 == 1 {
			out = append(out, r.nodeOf(&r.world.nodes[i]).Name)
		}
	}
	return out
}

// list says for schedules which nodes a listing shows.
func (r *run) list(in uint16) string {
	var out []string
	for i := range int8(maxNodes) {
		if in>>i&1 == 1 {
			out = append(out, r.title(i))
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

// title names a node in schedules.
func (r *run) title(i int8) string {
	n := &r.world.nodes[i]
	return fmt.Sprintf("%s%d-%s%d", r.of(n.client), n.id, r.sorts[n.sort].word, n.seq)
}

func (r *run) of(c int8) string { return string(rune('A' + c)) }

// id returns an id of a client that nothing has any more.
func (w *world) newID(c int8) int8 {
	var taken [16]bool
	for i := range w.nodes {
		if n := &w.nodes[i]; n.used && n.client == c {
			taken[n.id] = true
		}
	}
	for i := range w.attempts {
		if a := &w.attempts[i]; a.used && a.client == c {
			taken[a.id] = true
		}
	}
	for i := range w.creates {
		if one := &w.creates[i]; one.used && one.client == c {
			taken[one.id] = true
		}
	}
	for i := range w.sweeps {
		if one := &w.sweeps[i]; one.used && one.client == c {
			taken[one.id] = true
		}
	}
	for i := range taken {
		if !taken[i] {
			return int8(i)
		}
	}
	panic("no id is free")
}
