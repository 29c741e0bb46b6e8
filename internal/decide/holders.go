package decide

import (
	"github.com/turnstile-go/turnstile/kinds"
)

// The policies of the locks of this module.

// Exclusive lets one contender hold at a time, in order.
func Exclusive(kinds.Node) kinds.Policy { return kinds.Policy{} }

// ReadWrite lets readers wait for writers, and writers for all. A holder that downgrades has two nodes of
// one sequence. Neither of them waits for the other, whichever comes first by name.
func ReadWrite(me kinds.Node) kinds.Policy {
	p := kinds.Policy{Weight: func(ahead kinds.Node) int {
		if ahead.Sequence == me.Sequence || !Writes(me) && !Writes(ahead) {
			return 0
		}
		return 1
	}}
	if Writes(me) {
		// A downgrade puts a reader in the writer's place, which matters to writers only.
		p.Replaces = func(ahead kinds.Node) bool { return ahead.Prefix == kinds.PrefixWrite }
	}
	return p
}

// Writes reports whether a node is that of a writer.
func Writes(n kinds.Node) bool {
	return n.Prefix == kinds.PrefixWrite || n.Prefix == kinds.PrefixKazooLock
}

// Leases lets contenders hold as long as they have asked for so many leases at most.
func Leases(limit int) func(kinds.Node) kinds.Policy {
	return func(me kinds.Node) kinds.Policy {
		return kinds.Policy{Weight: func(ahead kinds.Node) int { return ahead.Weight }, Slack: limit - me.Weight}
	}
}

// Holders says which nodes hold, by the rule of each. The nodes are in order. A node that has
// left since they were listed is in nobody's way, unless another node has taken its place. No contender
// can have come ahead meanwhile.
func Holders(nodes []kinds.Node, ruleOf func(kinds.Node) (Rule, error), left func(i int) bool) ([]bool, error) {
	holds := make([]bool, len(nodes))
	for i, n := range nodes {
		rule, err := ruleOf(n)
		if err != nil {
			return nil, err
		}
		weight := 0
		for j := range nodes[:i] {
			ahead := &nodes[j]
			if w := WeightOf(rule.Policy, *ahead); w > 0 && (!left(j) || rule.Replaces != nil && rule.Replaces(*ahead)) {
				if weight = Sum(weight, w); weight > rule.Slack {
					break
				}
			}
		}
		holds[i] = weight <= rule.Slack
	}
	return holds, nil
}
