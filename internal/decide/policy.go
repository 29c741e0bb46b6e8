package decide

import (
	"math"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/kinds"
)

// rule is by what one contender goes.
type Rule struct {
	kinds.Policy
	kinds.Tightening // zero unless the kind has a configuration
}

// ruleOf returns the rule of one contender of a kind.
func RuleOf(k *kinds.Kind, n kinds.Node, c kinds.Config) (Rule, error) {
	if k.Configuration != nil {
		p, t, err := k.Configuration.Policy(n, c)
		return Rule{p, t}, err
	}
	return Rule{Policy: k.Policy(n)}, nil
}

// bound reports whether the present configuration governs a node, and no less strict one before
// it ever did.
func (p Rule) Bound(stat *zk.Stat) bool { return stat.Czxid > p.Tightened }

// lasts reports whether a contender keeps its node until it goes: the node is younger than every
// configuration that could make it outdated (rule 3 of renewals). stat is nil if it is not known.
func (p Rule) Lasts(stat *zk.Stat) bool {
	return stat != nil && p.Lowered != 0 && stat.Czxid > p.Lowered
}

// blocker is a node that is in the way of a contender.
type Blocker struct {
	Node     kinds.Node
	Weight   int
	Replaces bool
}

// blockers returns the nodes ahead of me that weigh something. They and nodes are in order.
func Blockers(me kinds.Node, nodes []kinds.Node, p kinds.Policy) []Blocker {
	ahead, _ := slices.BinarySearchFunc(nodes, me, Compare)
	out := make([]Blocker, 0, ahead) // growing it would cost as much as the listing, in a long queue
	for _, n := range nodes[:ahead] {
		if b, ok := BlockerOf(n, p); ok {
			out = append(out, b)
		}
	}
	return out
}

// blockerOf returns a node ahead as a blocker, or false if it weighs nothing.
func BlockerOf(ahead kinds.Node, p kinds.Policy) (Blocker, bool) {
	w := WeightOf(p, ahead)
	return Blocker{Node: ahead, Weight: w, Replaces: p.Replaces != nil && p.Replaces(ahead)}, w > 0
}

func WeightOf(p kinds.Policy, n kinds.Node) int {
	if p.Weight == nil {
		return 1
	}
	return p.Weight(n)
}

// mayGo reports whether the remaining weight is at most slack.
func MayGo(remaining []Blocker, slack int) bool {
	return Weigh(remaining) <= slack
}

func Weigh(bs []Blocker) int {
	sum := 0
	for _, b := range bs {
		sum = Sum(sum, b.Weight)
	}
	return sum
}

// add adds up to math.MaxInt, which the weights in node names can exceed if an int has 32 bits.
func Sum(a, b int) int {
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
func ToWatch(remaining []Blocker, slack int) []Blocker {
	sum := 0
	for i := len(remaining) - 1; i >= 0; i-- {
		if sum > Sum(slack, slack/2) {
			return remaining[i:]
		}
		sum = Sum(sum, remaining[i].Weight)
	}
	return remaining
}

// keepsWaiting reports whether one of the nodes waits for the node me.
func KeepsWaiting(kind *kinds.Kind, me kinds.Node, nodes []kinds.Node) bool {
	return slices.ContainsFunc(nodes, func(n kinds.Node) bool { return WaitsFor(kind, n, me) })
}

// waitsFor reports whether a node waits for the node me by the rule of its kind.
func WaitsFor(kind *kinds.Kind, n, me kinds.Node) bool {
	return Compare(n, me) > 0 && BlocksFor(kind, n, me)
}

// blocksFor reports whether a node ahead weighs something for a contender of the kind.
func BlocksFor(kind *kinds.Kind, contender, ahead kinds.Node) bool {
	p, err := RuleOf(kind, contender, kinds.Config{})
	return err != nil || WeightOf(p.Policy, ahead) > 0
}
