package queue

// Policy says when one contender may go. Its functions must be pure.
type Policy struct {
	// Weight returns what a node ahead weighs for this contender; a node of weight 0
	// or less does not block it. Nil: every node weighs 1.
	Weight func(ahead Node) int
	// Slack is the weight that may remain ahead of a contender that goes.
	Slack int
	// Replaces reports whether a node ahead may leave another in its place when it
	// goes, with the same sequence: a writer that becomes a reader. Then its going
	// proves nothing, and the contender lists again. Nil: none does.
	Replaces func(ahead Node) bool
}

// Kind is a kind of lock: what its contenders are called, and when each may go.
type Kind struct {
	// Name says it in a word: mutex, read, write, semaphore.
	Name string
	// Prefixes are those of the nodes that take part. Contenders with another known
	// prefix in the same directory are a conflict; all other children are ignored.
	Prefixes []string
	// Policy returns the policy of a contender, which for one of Prefixes its name
	// alone decides.
	Policy func(me Node) Policy
}

// blocker is a node ahead that weighs something.
type blocker struct {
	node     Node
	weight   int
	replaces bool
}

// blockers returns those ahead of me that weigh something, in order. nodes are in
// order too.
func blockers(me Node, nodes []Node, p Policy) []blocker {
	var out []blocker
	for _, n := range nodes {
		if compareNodes(n, me) >= 0 {
			break
		}
		w := 1
		if p.Weight != nil {
			w = p.Weight(n)
		}
		if w > 0 {
			out = append(out, blocker{n, w, p.Replaces != nil && p.Replaces(n)})
		}
	}
	return out
}

// mayGo reports whether what remains ahead is light enough.
func mayGo(remaining []blocker, slack int) bool {
	return weigh(remaining) <= slack
}

func weigh(bs []blocker) int {
	sum := 0
	for _, b := range bs {
		sum += b.weight
	}
	return sum
}

// toWatch returns which of those ahead to watch: the shortest tail that weighs more
// than slack, and one more before it, if there is one. As long as all of the tail
// stands, the contender may not go. When the one before it has gone, the contender
// can find out, while its turn has not yet come, that nobody else is ahead of the
// tail; then it needs to ask nobody when the tail goes.
//
// It must not be asked when the contender may go.
func toWatch(remaining []blocker, slack int) []blocker {
	sum := 0
	for i := len(remaining) - 1; i >= 0; i-- {
		if sum > slack {
			return remaining[i:]
		}
		sum += remaining[i].weight
	}
	return remaining
}
