package queue

import (
	"fmt"
	"math"
	"slices"

	"github.com/turnstile-go/turnstile/session"
)

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
	// Name says it in a word: mutex, unfair, read, write, semaphore.
	Name string
	// Prefixes are those of the nodes that take part: the constants, or others, which
	// are a word that ends in - or _. Contenders with another known prefix in the same
	// directory are a conflict; all other children are ignored.
	Prefixes []string
	// Policy returns the policy of a contender, which for one of Prefixes its name
	// alone decides. Required unless Configured is there, or Unfair set.
	Policy func(me Node) Policy

	// Config, if not empty, is what all who use a lock of this kind at one path agree
	// on, such as the limit of a semaphore. It is kept as the data of the directory: one
	// that has none is given it.
	Config []byte
	// Configured returns the policy of a contender where the directory's data is
	// config, in the place of Policy. An error ends the acquisition and is returned.
	// When the data changes, those who wait ask again.
	Configured func(me Node, config []byte) (Policy, error)

	// Unfair makes a lock without a queue: there is one node, of the one prefix with the
	// number 0, and who makes it holds the lock. The others wait for its end, all of them,
	// and then try again. It has no Policy and no Configured. See [Lease.Guard].
	Unfair bool
}

// Check reports, as an error that matches [session.ErrInvalid], what keeps a kind from being
// used, as every acquisition does: for a constructor that takes prefixes from its caller. It
// does no I/O.
func (k *Kind) Check() error {
	if k == nil || len(k.Prefixes) == 0 || (len(k.Config) == 0) != (k.Configured == nil) {
		return fmt.Errorf("%w: a kind of lock needs prefixes, and a policy or a configured one", session.ErrInvalid)
	}
	ways := 0
	for _, is := range []bool{k.Policy != nil, k.Configured != nil, k.Unfair} {
		if is {
			ways++
		}
	}
	if ways != 1 || k.Unfair && len(k.Prefixes) > 1 {
		return fmt.Errorf("%w: a kind of lock has a policy, or a configured one, or is unfair and has one prefix", session.ErrInvalid)
	}
	for _, prefix := range k.Prefixes {
		if err := checkPrefix(prefix); err != nil {
			return err
		}
	}
	return nil
}

// policyOf returns the policy of one contender.
func (k *Kind) policyOf(n Node, config []byte) (Policy, error) {
	switch {
	case k.Unfair:
		return Policy{}, nil
	case k.Configured != nil:
		return k.Configured(n, config)
	}
	return k.Policy(n), nil
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
	ahead, _ := slices.BinarySearchFunc(nodes, me, compareNodes)
	out := make([]blocker, 0, ahead) // of a long queue, growing it would cost as much as reading it
	for _, n := range nodes[:ahead] {
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
		sum = add(sum, b.weight)
	}
	return sum
}

// add stops at the largest number, which names of nodes can ask for where an int has 32 bits.
func add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
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
		sum = add(sum, remaining[i].weight)
	}
	return remaining
}
