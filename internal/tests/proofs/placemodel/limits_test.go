package placemodel

import (
	"slices"

	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// Semaphores whose limit changes: internal/place/renew.go.

// setRule is setRule of an attempt.
func (r *run) setRule(a *attempt, c *decide.Contender) bool {
	rule, err := r.ruleOf(a)
	if err != nil || rule.Slack < 0 {
		return false
	}
	c.Rule, a.outdated = rule, r.isOutdated(a, rule)
	c.Slack = r.slackOf(a, rule)
	return true
}

func (r *run) isOutdated(a *attempt, rule decide.Rule) bool {
	if len(r.configs) == 0 || r.rules.noOutdated {
		return false
	}
	return r.configs[a.after].Changed < rule.Tightened && r.czxid(r.world.nodes[a.node].era) <= rule.Tightened
}

func (r *run) slackOf(a *attempt, rule decide.Rule) int {
	if a.outdated {
		return max(rule.Slack, rule.Former)
	}
	return rule.Slack
}

// takeOver lets go of the attempt whose place this one has renewed.
func (r *run) takeOver(i int8) {
	a := &r.world.attempts[i]
	if a.renews == none {
		return
	}
	old := &r.world.attempts[a.renews]
	r.hear2(a.renews, decide.Replaced)
	if old.doubt && !r.rules.noSweep {
		r.startSweep(old.client, old.id)
	}
	*old = attempt{}
	a.renews = none
}

// behind returns the nodes behind that of an attempt which are in its way, because they may have gone by a
// higher limit.
func (r *run) behind(a *attempt, c *decide.Contender, names []string) []decide.Blocker {
	if !a.renewed || a.outdated || c.Rule.Tightened == 0 || r.rules.noBehind {
		return nil
	}
	nodes := slices.DeleteFunc(decide.ParseNodes(names, c.Kind.Prefixes...), func(n kinds.Node) bool {
		return a.doubt && n.ID == c.Node.ID && n.Name != c.Node.Name
	})
	first, _ := slices.BinarySearchFunc(nodes, c.Node, decide.Compare)
	var out []decide.Blocker
	for _, n := range nodes[first+1:] {
		rule, err := decide.RuleOf(c.Kind, n, r.configs[a.era])
		if err != nil {
			panic(err)
		}
		may := decide.MayGo(decide.Blockers(n, nodes, rule.Policy), rule.Former)
		if may && r.czxid(r.world.nodes[r.slot(n)].era) <= c.Rule.Tightened {
			out = append(out, decide.Blocker{Node: n, Weight: decide.WeightOf(c.Rule.Policy, n)})
		}
	}
	return out
}
