package queue

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/queueplumbing"
	"github.com/turnstile-go/turnstile/session"
)

// Policy says when one contender may go. Its functions must be pure: they may be called at any
// time and by several goroutines at once.
type Policy struct {
	// Weight returns what a node ahead weighs for this contender. A node of weight 0 or less
	// does not block it. If Weight is nil, each node weighs 1.
	Weight func(ahead Node) int
	// Slack is the weight that may remain ahead when the contender goes. For a mutex it is 0, for
	// a semaphore the number of leases less those that the contender asks for.
	Slack int
	// Replaces reports whether a node ahead may leave another node, with the same sequence
	// number, in its place: a writer that becomes a reader. The end of such a node proves
	// nothing, so the contender lists again. If Replaces is nil, no node does.
	Replaces func(ahead Node) bool
}

// Kind is a kind of lock: what its contenders are called, and when each of them may go. A kind
// has a Policy or is Unfair.
type Kind struct {
	// Name is one word for messages and telemetry, such as mutex, read, write or semaphore.
	Name string
	// Prefixes are the prefixes of the kind's contenders: some of the constants, or words of your
	// own that end in - or _. In the same directory, a contender with one of the constants that is
	// not a prefix of the kind is a conflict. All other children are ignored.
	Prefixes []string
	// Policy returns the policy of a contender. It must depend on me alone.
	Policy func(me Node) Policy

	// Unfair makes a lock without a queue. There is one node, with the one prefix and the
	// number 0, and the contender that creates it holds the lock. All others watch it, and
	// try again when it is gone. [Lease.Guard] is of no use for it.
	Unfair bool

	// configuration, if not nil, takes the place of Policy: see queueplumbing.Configure.
	configuration *configuration
}

// What a kind with a configuration is made of. Only the lock packages of this module have such kinds.
type (
	configuration = queueplumbing.Configuration[Node, Policy]
	config        = queueplumbing.Config
)

// Check returns an error that matches [session.ErrInvalid] if the kind cannot be used. Every
// acquisition checks its kind; Check is for constructors that take prefixes from their callers. It
// does no I/O.
func (k *Kind) Check() error {
	if k == nil || len(k.Prefixes) == 0 {
		return fmt.Errorf("%w: a kind of lock needs prefixes", session.ErrInvalid)
	}
	if c := k.configuration; c != nil && (len(c.Config) == 0 || c.Policy == nil) {
		return fmt.Errorf("%w: a configuration needs data and a policy", session.ErrInvalid)
	}
	ways := 0
	for _, is := range []bool{k.Policy != nil, k.configuration != nil, k.Unfair} {
		if is {
			ways++
		}
	}
	if ways != 1 || k.Unfair && len(k.Prefixes) > 1 {
		return fmt.Errorf("%w: a kind of lock has a policy, or is unfair with a single prefix", session.ErrInvalid)
	}
	for _, prefix := range k.Prefixes {
		if err := checkPrefix(prefix); err != nil {
			return err
		}
	}
	return nil
}

// called returns the kind's name with its article.
func (k *Kind) called() string {
	if k.Name != "" && strings.Contains("aeiou", k.Name[:1]) {
		return "an " + k.Name
	}
	return "a " + k.Name
}

// rule is by what one contender goes.
type rule struct {
	Policy
	queueplumbing.Tightening // zero unless the kind has a configuration
}

// ruleOf returns the rule of one contender.
func (k *Kind) ruleOf(n Node, c config) (rule, error) {
	switch {
	case k.Unfair:
		return rule{}, nil
	case k.configuration != nil:
		p, t, err := k.configuration.Policy(n, c)
		return rule{p, t}, err
	}
	return rule{Policy: k.Policy(n)}, nil
}

// blocker is a node that is in the way of a contender.
type blocker struct {
	node     Node
	weight   int
	replaces bool
	bare     bool // it is watched, and the attempt has to give the watch back
	plain    bool // it was listed by an attempt that is plain
}

// owner returns what the contender that owns the node says on w, the watch on it, as far as that counts. w may be nil.
func (b *blocker) owner(w *core.Watch) core.Owner {
	if !b.plain || w == nil {
		return core.OwnerUnknown
	}
	return w.Owner()
}

// blockers returns the nodes ahead of me that weigh something. They and nodes are in order.
func blockers(me Node, nodes []Node, p Policy) []blocker {
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
func blockerOf(ahead Node, p Policy) (blocker, bool) {
	w := weightOf(p, ahead)
	return blocker{node: ahead, weight: w, replaces: p.Replaces != nil && p.Replaces(ahead)}, w > 0
}

func weightOf(p Policy, n Node) int {
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
