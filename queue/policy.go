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
	// Tightened, if not 0, is the transaction (zxid) that replaced a configuration by which
	// more contenders could go. A contender with an older node may have gone by that one,
	// whose slack for it was at most Former.
	Tightened int64
	Former    int
	// Lowered, if not 0, is the last transaction that made the lock stricter, which may be less
	// strict again since. Contenders whose servers lag behind still go by what was in force
	// then. So a node that is older may be replaced where Replaces says so; a younger one is not.
	Lowered int64
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
	// Configured returns the policy of a contender under a configuration of the directory,
	// in the place of Policy. An error ends the acquisition and is returned. When the data
	// changes, the contenders that wait ask again.
	Configured func(me Node, config Config) (Policy, error)

	// Rivals returns which of the names in the directory are those of directories where
	// contenders of another kind of lock stand in line for the same thing. If one of them
	// has any, that is a conflict. Nil: none is.
	Rivals func(names []string) []string

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
func (k *Kind) policyOf(n Node, config Config) (Policy, error) {
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
		if w := weightOf(p, n); w > 0 {
			out = append(out, blocker{n, w, p.Replaces != nil && p.Replaces(n)})
		}
	}
	return out
}

func weightOf(p Policy, n Node) int {
	if p.Weight == nil {
		return 1
	}
	return p.Weight(n)
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

// toWatch returns which of the nodes in the way to watch: the shortest tail that weighs
// more than slack and half as much again, and one more before it, if there is one. As long
// as more than slack of the tail stands, the contender may not go and has nothing to ask.
// When little more than that is left, it lists again, while its turn has not yet come; if
// nothing else is ahead of the tail by then, it needs to ask nobody when its turn comes.
//
// The half is for locks with many leases. Without it, each holder that leaves makes all
// contenders that watch it list, up to slack of them; with it, a contender lists once for
// every slack/2 that leave.
//
// It must not be asked when the contender may go.
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
