package decide

import (
	"slices"

	"github.com/turnstile-go/turnstile/kinds"
)

// contender is a node of ours, as far as it matters for what a listing says.
type Contender struct {
	Kind   *kinds.Kind
	Node   kinds.Node
	Rule   Rule
	Slack  int
	Beside string // the name of the node whose place ours shares; "" if it shares none
	Doubt  bool   // there may be other nodes of ours
	Lazy   bool   // the place may be kept
}

// listing is what a listing shows to a contender.
type Listing struct {
	Ahead    *Tail        // in its way
	Crowded  bool         // it may be kept, and somebody behind it waits for it
	Twins    []kinds.Node // other nodes of its own, made by creates whose replies were lost
	Stranger kinds.Node   // of another kind of lock, if it has a name; then the rest says nothing
}

// read reads the names of a listing.
func (c *Contender) Read(names []string) Listing {
	seen := Listing{Ahead: NewTail(c.Node, c.Slack)}
	for _, name := range names {
		n, ok := kinds.ParseNode(name, c.Kind.Prefixes...)
		switch {
		case !ok || c.Beside != "" && n.Name == c.Beside:
		case !slices.Contains(c.Kind.Prefixes, n.Prefix):
			return Listing{Stranger: n}
		case c.Doubt && n.ID == c.Node.ID && n.Name != c.Node.Name:
			seen.Twins = append(seen.Twins, n)
		case Compare(n, c.Node) >= 0:
			seen.Crowded = seen.Crowded || c.Lazy && WaitsFor(c.Kind, n, c.Node)
		default:
			if b, ok := BlockerOf(n, c.Rule.Policy); ok {
				seen.Ahead.Add(b)
			} else {
				seen.Ahead.Passes(n)
			}
		}
	}
	return seen
}
