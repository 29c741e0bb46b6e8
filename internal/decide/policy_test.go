package decide

import (
	"math"
	"slices"
	"testing"

	"github.com/turnstile-go/turnstile/kinds"
)

// The policies of zklock, rwlock and semaphore.
func mutexPolicy(kinds.Node) kinds.Policy { return kinds.Policy{} }

func rwPolicy(me kinds.Node) kinds.Policy {
	if me.Prefix == kinds.PrefixRead {
		return kinds.Policy{Weight: func(n kinds.Node) int {
			if n.Prefix == kinds.PrefixRead {
				return 0
			}
			return 1
		}}
	}
	// A writer ahead may turn into a reader.
	return kinds.Policy{Replaces: func(n kinds.Node) bool { return n.Prefix == kinds.PrefixWrite }}
}

func semaphorePolicy(limit int) func(kinds.Node) kinds.Policy {
	return func(me kinds.Node) kinds.Policy {
		return kinds.Policy{
			Weight: func(n kinds.Node) int { return n.Weight },
			Slack:  limit - me.Weight,
		}
	}
}

// parseQueue returns the contenders of a table, in order, one letter each: m for a mutex, r and w for
// readers and writers, and a digit for the leases that a contender asks of a semaphore.
func parseQueue(t *testing.T, s string) []kinds.Node {
	t.Helper()
	var nodes []kinds.Node
	for i, c := range s {
		n := kinds.Node{Name: string(rune('a'+i)) + string(c), Weight: 1, Sequence: int32(i)}
		switch c {
		case 'm':
			n.Prefix = kinds.PrefixLock
		case 'r':
			n.Prefix = kinds.PrefixRead
		case 'w':
			n.Prefix = kinds.PrefixWrite
		default:
			n.Prefix, n.Weight = kinds.PrefixLease, int(c-'0')
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func TestDecision(t *testing.T) {
	for _, c := range []struct {
		what    string
		policy  func(kinds.Node) kinds.Policy
		queue   string // I am the last
		ahead   []int32
		goes    bool
		watched []int32
	}{
		{"mutex, alone", mutexPolicy, "m", nil, true, nil},
		{"mutex, second", mutexPolicy, "mm", []int32{0}, false, []int32{0}},
		{"mutex, third: the predecessor, and one more", mutexPolicy, "mmm", []int32{0, 1}, false, []int32{0, 1}},
		{"mutex, far behind", mutexPolicy, "mmmmmmm", []int32{0, 1, 2, 3, 4, 5}, false, []int32{4, 5}},

		{"reader, alone", rwPolicy, "r", nil, true, nil},
		{"reader behind readers", rwPolicy, "rrrr", nil, true, nil},
		{"reader behind a writer", rwPolicy, "wr", []int32{0}, false, []int32{0}},
		{"reader behind a writer behind a reader", rwPolicy, "rwr", []int32{1}, false, []int32{1}},
		{"reader behind writers watches the last ones", rwPolicy, "wrwrwrr", []int32{0, 2, 4}, false, []int32{2, 4}},
		{"writer behind readers", rwPolicy, "rrrw", []int32{0, 1, 2}, false, []int32{1, 2}},
		{"writer behind a writer", rwPolicy, "ww", []int32{0}, false, []int32{0}},

		{"semaphore, room for all", semaphorePolicy(3), "111", []int32{0, 1}, true, nil},
		{"semaphore, full", semaphorePolicy(3), "1111", []int32{0, 1, 2}, false, []int32{0, 1, 2}},
		{"semaphore, full, one before the tail", semaphorePolicy(3), "1111111", []int32{0, 1, 2, 3, 4, 5}, false, []int32{1, 2, 3, 4, 5}},
		{"semaphore, asks for all", semaphorePolicy(3), "13", []int32{0}, false, []int32{0}},
		{"semaphore, a small request waits behind a large one", semaphorePolicy(3), "131", []int32{0, 1}, false, []int32{0, 1}},
		{"semaphore, a heavy one is most of a tail", semaphorePolicy(3), "11131", []int32{0, 1, 2, 3}, false, []int32{1, 2, 3}},
		{"semaphore, fits exactly", semaphorePolicy(5), "23", []int32{0}, true, nil},
		{"semaphore, one too much", semaphorePolicy(5), "24", []int32{0}, false, []int32{0}},
		{"semaphore of one is a mutex", semaphorePolicy(1), "111", []int32{0, 1}, false, []int32{0, 1}},
		{"semaphore, asks for more than there is", semaphorePolicy(2), "3", nil, false, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			nodes := parseQueue(t, c.queue)
			me := nodes[len(nodes)-1]
			// Later ones, and my own node, must make no difference.
			nodes = append(nodes, kinds.Node{Name: "zz", Prefix: me.Prefix, Weight: 9, Sequence: me.Sequence + 1})
			p := c.policy(me)
			ahead := Blockers(me, nodes, p)
			if got := sequences(ahead); !slices.Equal(got, c.ahead) {
				t.Errorf("blockers %v, want %v", got, c.ahead)
			}
			if got := MayGo(ahead, p.Slack); got != c.goes {
				t.Fatalf("mayGo %v, want %v", got, c.goes)
			}
			if c.goes {
				return
			}
			if got := sequences(ToWatch(ahead, p.Slack)); !slices.Equal(got, c.watched) {
				t.Errorf("watches %v, want %v", got, c.watched)
			}
		})
	}
}

func sequences(bs []Blocker) []int32 {
	var out []int32
	for _, b := range bs {
		out = append(out, b.Node.Sequence)
	}
	return out
}

// A node of weight 0 or less neither blocks nor is watched. Replaces is called for each node that
// blocks.
func TestBlockersKeepsWhatReplaces(t *testing.T) {
	nodes := parseQueue(t, "rwrw")
	me := nodes[3]
	for _, b := range Blockers(me, nodes, rwPolicy(me)) {
		if b.Replaces != (b.Node.Prefix == kinds.PrefixWrite) {
			t.Errorf("%s: replaces is %v", b.Node.Name, b.Replaces)
		}
	}
	negative := kinds.Policy{Weight: func(kinds.Node) int { return -1 }}
	if got := Blockers(me, nodes, negative); len(got) > 0 {
		t.Errorf("of negative weight: %v", got)
	}
}

// The sum of two weights can be more than an int of 32 bits holds.
func TestWeightsDoNotOverflow(t *testing.T) {
	const most = math.MaxInt
	p := kinds.Policy{Weight: func(n kinds.Node) int { return n.Weight }, Slack: most - 1}
	me := kinds.Node{Name: "c", Weight: 1, Sequence: 3}
	nodes := []kinds.Node{{Name: "a", Weight: most, Sequence: 1}, {Name: "b", Weight: most, Sequence: 2}, me}
	ahead := Blockers(me, nodes, p)
	if MayGo(ahead, p.Slack) {
		t.Error("goes beside two contenders that have all of it")
	}
	if watched := ToWatch(ahead, p.Slack); len(watched) != 2 {
		t.Errorf("watches %v", watched)
	}
}
