package place

import (
	"math"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/kinds"
)

// called returns the kind's name with its article.
func called(k *kinds.Kind) string {
	if k.Name != "" && strings.Contains("aeiou", k.Name[:1]) {
		return "an " + k.Name
	}
	return "a " + k.Name
}

// rule is by what one contender goes.
type rule struct {
	kinds.Policy
	kinds.Tightening // zero unless the kind has a configuration
}

// ruleOf returns the rule of one contender of a kind.
func ruleOf(k *kinds.Kind, n kinds.Node, c kinds.Config) (rule, error) {
	switch {
	case k.Unfair:
		return rule{}, nil
	case k.Configuration != nil:
		p, t, err := k.Configuration.Policy(n, c)
		return rule{p, t}, err
	}
	return rule{Policy: k.Policy(n)}, nil
}

// blocker is a node that is in the way of a contender.
type blocker struct {
	node     kinds.Node
	weight   int
	replaces bool
	plain    bool // it was listed by an attempt that is plain
}

// owner returns what the contender that owns the node says on w, the watch on it, as far as that counts.
func (b *blocker) owner(w *core.Watch) core.Owner {
	if !b.plain {
		return core.OwnerUnknown
	}
	return w.Owner()
}

// blockers returns the nodes ahead of me that weigh something. They and nodes are in order.
func blockers(me kinds.Node, nodes []kinds.Node, p kinds.Policy) []blocker {
	ahead, _ := slices.BinarySearchFunc(nodes, me, compareNodes)
	out := make([]blocker, 0, ahead) // growing it would cost as much as the listing, in a long queue
	for _, n := range nodes[:ahead] {
		if b, ok := blockerOf(n, p); ok {
			out = append(out, b)
		}
	}
	return out
}

// blockerOf returns a node ahead as a blocker, or false if it weighs nothing.
func blockerOf(ahead kinds.Node, p kinds.Policy) (blocker, bool) {
	w := weightOf(p, ahead)
	return blocker{node: ahead, weight: w, replaces: p.Replaces != nil && p.Replaces(ahead)}, w > 0
}

func weightOf(p kinds.Policy, n kinds.Node) int {
	if p.Weight == nil {
		return 1
	}
	return p.Weight(n)
}

// mayGo reports whether the remaining weight is at most slack.
func mayGo(remaining []blocker, slack int) bool {
	return weigh(remaining) <= slack
}

func weigh(bs []blocker) int {
	sum := 0
	for _, b := range bs {
		sum = add(sum, b.weight)
	}
	return sum
}

// add adds up to math.MaxInt, which the weights in node names can exceed if an int has 32 bits.
func add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// toWatch returns the nodes in the way to watch: the shortest tail that weighs more than one and
// a half times slack, and one more node before it, if there is one. It must not be called when the
// contender may go.
//
// While more than slack of the tail stands, the contender may not go, and has nothing to ask. When
// only a little more than slack stands, it lists again, while its turn has not come yet. If by
// then no other nodes are ahead of the tail, it needs no request when its turn comes.
//
// The additional half of slack is for locks with many leases. Without it, each release makes all
// contenders that watch the node list the directory, up to slack of them. With it, a contender
// lists once for every slack/2 releases.
func toWatch(remaining []blocker, slack int) []blocker {
	sum := 0
	for i := len(remaining) - 1; i >= 0; i-- {
		if sum > add(slack, slack/2) {
			return remaining[i:]
		}
		sum = add(sum, remaining[i].weight)
	}
	return remaining
}
