package decide

import (
	"math"

	"github.com/turnstile-go/turnstile/kinds"
)

// Newcomer returns the node of a contender that has not entered: it comes after all others. It has no name.
func Newcomer(prefix string, weight int) kinds.Node {
	return kinds.Node{Prefix: prefix, Weight: weight, Sequence: math.MaxInt32}
}

// WouldWait returns the nodes that would be in the way of a contender that enters now, by the names of a listing and the
// configuration of the directory. It returns nil if none would, and if the contender has to enter to find out: another
// kind of lock is there, or the rule does not let it go at all.
func WouldWait(k *kinds.Kind, me kinds.Node, names []string, c kinds.Config) *Tail {
	rule, err := RuleOf(k, me, c)
	if err != nil || rule.Slack < 0 {
		return nil
	}
	seen := (&Contender{Kind: k, Node: me, Rule: rule, Slack: rule.Slack}).Read(names)
	if seen.Stranger.Name != "" || seen.Ahead.MayGo() {
		return nil
	}
	seen.Ahead.Sort()
	return seen.Ahead
}
