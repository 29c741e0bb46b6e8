package decide

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/turnstile-go/turnstile/kinds"
)

// A tail says the same as all nodes in the way, in whatever order they come: which of them to watch,
// how many others there are and what they weigh, whether the contender may go, and how many are the
// first of the queue.
func TestTailSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slack := rapid.IntRange(0, 60).Draw(t, "slack")
		weights := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 400).Draw(t, "weights")
		p := kinds.Policy{Slack: slack, Weight: func(n kinds.Node) int { return n.Weight }}
		var nodes []kinds.Node
		for i, w := range weights {
			nodes = append(nodes, kinds.Node{Name: fmt.Sprint(i), Sequence: int32(i), Weight: w})
		}
		me := kinds.Node{Name: "me", Sequence: int32(len(nodes))}
		all := Blockers(me, nodes, p)
		got := NewTail(me, slack)
		for _, i := range rapid.Permutation(sequence(len(nodes))).Draw(t, "order") {
			if b, ok := BlockerOf(nodes[i], p); ok {
				got.Add(b)
			} else {
				got.Passes(nodes[i])
			}
		}
		got.Sort()
		if got.Count() != len(all) || got.MayGo() != MayGo(all, slack) {
			t.Fatalf("%d in the way, may go: %v; want %d, %v", got.Count(), got.MayGo(), len(all), MayGo(all, slack))
		}
		want := ToWatch(all, slack)
		if !slices.Equal(sequences(got.Last), sequences(want)) {
			t.Fatalf("watches %v, want %v", sequences(got.Last), sequences(want))
		}
		if others := all[:len(all)-len(want)]; got.Beyond != len(others) || got.Rest != Weigh(others) {
			t.Fatalf("%d beyond weigh %d, want %d and %d", got.Beyond, got.Rest, len(others), Weigh(others))
		}
		first := 0
		for got.Beyond == 0 && first < len(all) && all[first].Node == nodes[first] {
			first++
		}
		if got.Head() != first {
			t.Fatalf("%d are the first of the queue, want %d", got.Head(), first)
		}
	})
}

func sequence(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// A longer listing takes no more memory.
func TestLongListingIsNotKept(t *testing.T) {
	allocs := func(contenders int) float64 {
		names := make([]string, contenders)
		for i := range names {
			names[i] = fmt.Sprintf("%s%010d", kinds.NodeName(uuid.NewString(), kinds.PrefixLock, 1, false), i)
		}
		me, _ := kinds.ParseNode(names[contenders-1])
		rand.Shuffle(contenders, func(i, j int) { names[i], names[j] = names[j], names[i] })
		c := Contender{Kind: &kinds.Kind{Name: "mutex", Prefixes: []string{kinds.PrefixLock}}, Node: me}
		if ahead := c.Read(names).Ahead; ahead.Count() != contenders-1 || cap(ahead.Last) > 2*fewest {
			t.Fatalf("%d nodes are kept of %d", cap(ahead.Last), contenders)
		}
		return testing.AllocsPerRun(10, func() { c.Read(names) })
	}
	if few, many := allocs(100), allocs(10_000); many > few {
		t.Errorf("%v allocations for 10000 contenders, %v for 100", many, few)
	}
}
