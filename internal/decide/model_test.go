package decide

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/turnstile-go/turnstile/kinds"
)

// model is a directory and its contenders. A contender knows only what a listing and the ends of its
// watches have told it, in any order and after any time.
type model struct {
	policy func(kinds.Node) kinds.Policy
	nodes  []kinds.Node // in the directory
	next   int32
	all    []*actor
}

// actor is one contender. Its node is in the directory until it leaves.
type actor struct {
	node kinds.Node
	p    kinds.Policy
	here bool // has a node
	goes bool // has been granted, and has not left

	listed  bool // acts on the fields below; otherwise it has to list
	ahead   []Blocker
	targets []Blocker
	gone    []string // of targets, reported
}

func (m *model) enter(prefix string, weight int) {
	n := kinds.Node{
		Name: fmt.Sprintf("%s%010d", kinds.NodeName(fmt.Sprint(m.next), prefix, weight, false), m.next), ID: fmt.Sprint(m.next),
		Prefix: prefix, Weight: weight, Sequence: m.next,
	}
	m.next++
	m.nodes = append(m.nodes, n)
	m.all = append(m.all, &actor{node: n, p: m.policy(n), here: true})
}

func (m *model) leave(a *actor) {
	a.here, a.goes = false, false
	m.nodes = slices.DeleteFunc(m.nodes, func(n kinds.Node) bool { return n.Name == a.node.Name })
}

// downgrade turns a writer that goes into a reader with the same sequence number.
func (m *model) downgrade(a *actor) {
	i := slices.IndexFunc(m.nodes, func(n kinds.Node) bool { return n.Name == a.node.Name })
	a.node.Name, a.node.Prefix = "down-"+a.node.Name, kinds.PrefixRead
	a.p = m.policy(a.node)
	m.nodes[i] = a.node
}

// list does what an attempt does with a listing: decide, and watch. A target that is gone by now counts
// as reported.
func (m *model) list(a *actor) {
	a.ahead = Blockers(a.node, m.nodes, a.p)
	a.targets, a.gone, a.listed = nil, nil, true
	if MayGo(a.ahead, a.p.Slack) {
		a.goes = true
		return
	}
	a.targets = ToWatch(a.ahead, a.p.Slack)
}

// hear reports one target that is gone, as look does.
func (m *model) hear(a *actor, b Blocker) {
	if b.Replaces {
		a.listed = false
		return
	}
	a.gone = append(a.gone, b.Node.Name)
	remaining := slices.DeleteFunc(slices.Clone(a.ahead), func(b Blocker) bool { return slices.Contains(a.gone, b.Node.Name) })
	if MayGo(remaining, a.p.Slack) {
		a.goes = true
	} else {
		a.listed = len(a.targets) == len(a.ahead) // it knows all there are
	}
}

// unheard returns the targets that are gone without the actor's knowledge.
func (m *model) unheard(a *actor) []Blocker {
	return slices.DeleteFunc(slices.Clone(a.targets), func(b Blocker) bool {
		return slices.Contains(a.gone, b.Node.Name) ||
			slices.ContainsFunc(m.nodes, func(n kinds.Node) bool { return n.Name == b.Node.Name })
	})
}

// waiting returns the waiters by what they have to do next, and the actors that go.
func (m *model) waiting() (unlisted, deaf, going, here []*actor) {
	for _, a := range m.all {
		switch {
		case !a.here:
			continue
		case a.goes:
			going = append(going, a)
		case !a.listed:
			unlisted = append(unlisted, a)
		case len(m.unheard(a)) > 0:
			deaf = append(deaf, a)
		}
		here = append(here, a)
	}
	return
}

// settle lets all actors do what they have to do, and returns those that go then.
func (m *model) settle() []*actor {
	for {
		unlisted, deaf, going, _ := m.waiting()
		for _, a := range unlisted {
			m.list(a)
		}
		for _, a := range deaf {
			m.hear(a, m.unheard(a)[0])
		}
		if len(unlisted)+len(deaf) == 0 {
			return going
		}
	}
}

// noneForgotten checks that no waiter that has nothing left to hear may go.
func (m *model) noneForgotten(t *rapid.T) {
	for _, a := range m.all {
		if a.here && !a.goes && MayGo(Blockers(a.node, m.nodes, a.p), a.p.Slack) {
			t.Fatalf("%s may go and waits for ever for %v", a.node.Name, sequences(a.targets))
		}
	}
}

// scheme is one kind of lock: its requests, and which contenders may go together.
type scheme struct {
	name   string
	policy func(kinds.Node) kinds.Policy
	ask    func(*rapid.T) (prefix string, weight int)
	agree  func(going []kinds.Node) bool
}

func schemes() []scheme {
	const limit = 4
	return []scheme{
		{"mutex", mutexPolicy,
			func(t *rapid.T) (string, int) {
				return rapid.SampledFrom([]string{kinds.PrefixLock, kinds.PrefixKazooLock}).Draw(t, "prefix"), 1
			},
			func(going []kinds.Node) bool { return len(going) <= 1 }},
		{"readers and writers", rwPolicy,
			func(t *rapid.T) (string, int) {
				return rapid.SampledFrom([]string{kinds.PrefixRead, kinds.PrefixWrite}).Draw(t, "prefix"), 1
			},
			func(going []kinds.Node) bool {
				return len(going) <= 1 || !slices.ContainsFunc(going, func(n kinds.Node) bool { return n.Prefix == kinds.PrefixWrite })
			}},
		{"semaphore", semaphorePolicy(limit),
			func(t *rapid.T) (string, int) { return kinds.PrefixLease, rapid.IntRange(1, limit).Draw(t, "weight") },
			func(going []kinds.Node) bool {
				sum := 0
				for _, n := range going {
					sum += n.Weight
				}
				return sum <= limit
			}},
	}
}

// TestModel lets contenders come, go, hear and list in any order. Two that conflict must never go
// together. When all is heard, no contender that may go must be left waiting.
func TestModel(t *testing.T) {
	for _, s := range schemes() {
		t.Run(s.name, rapid.MakeCheck(func(t *rapid.T) {
			m := &model{policy: s.policy}
			pick := func(t *rapid.T, from []*actor) *actor {
				if len(from) == 0 {
					t.Skip("nobody") // of rapid: this draw is discarded, not the test
				}
				return rapid.SampledFrom(from).Draw(t, "who")
			}
			t.Repeat(map[string]func(*rapid.T){
				"enter": func(t *rapid.T) { m.enter(s.ask(t)) },
				"list": func(t *rapid.T) {
					unlisted, _, _, _ := m.waiting()
					m.list(pick(t, unlisted))
				},
				"hear": func(t *rapid.T) {
					_, deaf, _, _ := m.waiting()
					a := pick(t, deaf)
					m.hear(a, rapid.SampledFrom(m.unheard(a)).Draw(t, "what"))
				},
				"look again": func(t *rapid.T) { // the timer, or a broken connection
					_, _, _, here := m.waiting()
					if a := pick(t, here); !a.goes {
						a.listed = false
					}
				},
				"leave": func(t *rapid.T) { // a release, a cancellation, a death
					_, _, _, here := m.waiting()
					m.leave(pick(t, here))
				},
				"downgrade": func(t *rapid.T) {
					_, _, going, _ := m.waiting()
					if a := pick(t, going); a.node.Prefix == kinds.PrefixWrite {
						m.downgrade(a)
					}
				},
				"settle": func(t *rapid.T) {
					m.settle()
					m.noneForgotten(t)
				},
				"": func(t *rapid.T) {
					_, _, going, _ := m.waiting()
					var nodes []kinds.Node
					for _, a := range going {
						nodes = append(nodes, a.node)
					}
					if !s.agree(nodes) {
						t.Fatalf("these go together: %v", nodes)
					}
				},
			})
			m.settle()
			m.noneForgotten(t)
		}))
	}
}

// A release of a mutex lets exactly one contender in, the next in order. It wakes two at most: that
// one, and one that only lists again.
func TestModelMutexRelease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{policy: mutexPolicy}
		for range rapid.IntRange(2, 20).Draw(t, "contenders") {
			m.enter(kinds.PrefixLock, 1)
		}
		for _, a := range rapid.Permutation(m.all).Draw(t, "order of listing") {
			m.list(a)
		}
		for i := range m.all[:len(m.all)-1] {
			going := m.settle()
			if len(going) != 1 || going[0] != m.all[i] {
				t.Fatalf("%d go, where %s should", len(going), m.all[i].node.Name)
			}
			m.leave(going[0])
			if _, told, _, _ := m.waiting(); len(told) > 2 {
				t.Fatalf("a release wakes %d", len(told))
			}
		}
		if going := m.settle(); len(going) != 1 || going[0] != m.all[len(m.all)-1] {
			t.Fatal("the last does not go")
		}
	})
}

// While the whole watched tail stands, the contender may not go, whatever other nodes leave. The tail is
// half of the slack longer than that takes, and one node more.
func TestTailProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slack := rapid.IntRange(0, 6).Draw(t, "slack")
		var ahead []Blocker
		for i, w := range rapid.SliceOfN(rapid.IntRange(1, 5), 1, 12).Draw(t, "weights") {
			ahead = append(ahead, Blocker{Node: kinds.Node{Name: fmt.Sprint(i), Sequence: int32(i)}, Weight: w})
		}
		if MayGo(ahead, slack) {
			t.Skip("may go") // of rapid: this draw is discarded, not the test
		}
		targets := ToWatch(ahead, slack)
		tail := targets
		if len(targets) < len(ahead) {
			tail = targets[1:]
		} else if Weigh(targets[1:]) > slack+slack/2 {
			tail = targets[1:]
		}
		if MayGo(tail, slack) {
			t.Fatalf("with the tail %v standing it may go", sequences(tail))
		}
		if !MayGo(tail[1:], slack+slack/2) {
			t.Fatalf("the tail %v is longer than it need be", sequences(tail))
		}
		if !slices.Equal(sequences(targets), sequences(ahead[len(ahead)-len(targets):])) {
			t.Fatalf("%v is no tail of %v", sequences(targets), sequences(ahead))
		}
	})
}
