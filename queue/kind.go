package queue

import (
	"math"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Policy says when one contender may go. Its functions must be pure: they may be called at any time and by several
// goroutines at once.
type Policy struct {
	// Weight returns what a node ahead weighs for this contender. A node of weight 0 or less does not block it. If
	// Weight is nil, each node weighs 1.
	Weight func(ahead Node) int
	// Slack is the weight that may remain ahead when the contender goes. For a mutex it is 0, for a semaphore the number
	// of leases less those that the contender asks for. If it is negative, the contender asks for more than there is: its
	// acquisition fails with session.ErrInvalid.
	Slack int
	// Replaces reports whether a node ahead may leave another node, with the same sequence number, in its place: a
	// writer that becomes a reader. The end of such a node proves nothing, so the contender lists again. If Replaces is
	// nil, no node does.
	Replaces func(ahead Node) bool
}

// Kind is a kind of lock: what its contenders are called, and when each of them may go. A kind has a Policy or a
// Configuration. It must not be changed once it is used.
type Kind struct {
	// Name is one word for messages and telemetry, such as mutex, read, write or semaphore.
	Name string
	// Prefixes are the prefixes of the kind's contenders: some of the constants, or words of your own that end in - or
	// _. In the same directory, a contender with one of the constants that is not a prefix of the kind is a conflict.
	// All other children are ignored.
	Prefixes []string
	// Policy returns the policy of a contender. It must depend on me alone.
	Policy func(me Node) Policy

	// Configuration makes the lock depend on what all its users agree on, such as a limit. It takes the place of Policy.
	Configuration *Configuration
}

// Config is the data of a queue's directory. A kind with a [Configuration] decides by it.
type Config struct {
	Data    []byte
	Changed int64 // the transaction (zxid) that set the data
	Version int32 // how often the data was set since the directory was made
}

// Configuration makes a kind of lock depend on the data of the directory: the [Config]. A lock of such a kind can be
// changed while it is in use. Waiting contenders then decide again. Package semaphore is made this way. The functions must
// be pure, as those of a [Policy]. A lock of such a kind keeps no places.
//
// A change that makes the lock stricter, such as a lower limit, must not leave more holders than the new data allows.
// The client that makes it first acquires what is to be taken away, and sets the data while it holds that: then those
// ahead go by the new data, and those behind wait for the holder.
type Configuration struct {
	// Config is what all users of a lock of this kind at one path must agree on, such as the limit of a semaphore. It is
	// the data of the directory. A contender that finds no data sets it.
	Config []byte
	// Policy returns the policy of a contender under a configuration of the directory. It must depend on its arguments
	// alone. Its error ends the acquisition, which returns it.
	Policy func(me Node, config Config) (Policy, error)
	// Rivals are names of directories below the queue's in which contenders of another kind of lock contend for the same
	// thing. A contender in one of them is a conflict. Each contender lists them once, in this order, when its node
	// stands. If there are none of these directories, that takes no request.
	Rivals []string
}

// Check returns an error that matches session.ErrInvalid if the kind cannot be used. Every acquisition checks its kind;
// Check is for constructors that take prefixes from their callers. It does no I/O.
func (k *Kind) Check() error {
	switch {
	case k == nil || len(k.Prefixes) == 0:
		return misuse.Invalidf("a kind of lock needs prefixes")
	case (k.Policy == nil) == (k.Configuration == nil):
		return misuse.Invalidf("a kind of lock needs a policy or a configuration, and cannot have both")
	case k.Configuration != nil && (len(k.Configuration.Config) == 0 || k.Configuration.Policy == nil):
		return misuse.Invalidf("a configuration needs data and a policy")
	}
	// A prefix must end in - or _, and not in "--" or "_-", so that its end can be told if a negative number follows. It cannot
	// begin with -, since the part of the name before it usually ends with that.
	for _, prefix := range k.Prefixes {
		if slices.Contains(knownPrefixes, prefix) && prefix != prefixUnfair {
			continue
		}
		word := strings.TrimRight(prefix, "-_")
		switch {
		case prefix == prefixUnfair:
			return misuse.Invalidf("prefix %q: earlier states of this module had it for locks without a queue", prefix)
		case word == "" || word == prefix || prefix[0] == '-' || strings.Contains(prefix, "/") ||
			strings.HasPrefix(prefix, protected) || strings.HasSuffix(prefix, "--") || strings.HasSuffix(prefix, "_-"):
			return misuse.Invalidf("prefix %q: want a word with a single - or _ at its end, such as %q", prefix, PrefixLock)
		}
		if err := misuse.ValidatePath("/" + prefix); err != nil {
			return err
		}
	}
	return nil
}

// policy returns the policy of a contender under a configuration, which kinds with a Policy ignore.
func (k *Kind) policy(n Node, c Config) (Policy, error) {
	if k.Configuration != nil {
		return k.Configuration.Policy(n, c)
	}
	return k.Policy(n), nil
}

// weigh returns what a node ahead weighs, 0 if it is not in the way.
func (p *Policy) weigh(ahead Node) int {
	if p.Weight == nil {
		return 1
	}
	return max(0, p.Weight(ahead))
}

func (p *Policy) replaces(ahead Node) bool { return p.Replaces != nil && p.Replaces(ahead) }

// blocks reports whether a node of the kind is in the way of another behind it. What a configuration says is not known
// here, so it blocks.
func (k *Kind) blocks(ahead, behind Node) bool {
	if k.Configuration != nil {
		return true
	}
	p := k.Policy(behind)
	return p.weigh(ahead) > 0
}

// addWeights adds up to math.MaxInt, which the weights in names can exceed if an int has 32 bits.
func addWeights(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// Mutex is the kind of lock of package zklock, of Curator's InterProcessMutex and of kazoo's Lock: each node ahead
// weighs 1, and no weight may remain. A [Kind] of your own, with another name or other prefixes, can have the Policy of
// this one.
func Mutex() *Kind {
	return &Kind{Name: "mutex", Prefixes: []string{PrefixLock, PrefixKazooLock}, Policy: exclusive}
}

// Reader is the kind of lock of the readers of package rwlock, of Curator's InterProcessReadWriteLock and of kazoo's
// ReadLock: writers ahead weigh 1, readers nothing, and no weight may remain.
func Reader() *Kind {
	return &Kind{
		Name:     "read",
		Prefixes: []string{PrefixRead, PrefixWrite, PrefixKazooLock, PrefixKazooRead},
		Policy:   readWrite,
	}
}

// Writer is [Reader] for the writers of the same locks: each node ahead weighs 1, and no weight may remain. The two differ in
// their name and first prefix: a [Request] of either kind can have the prefix of the other.
func Writer() *Kind {
	return &Kind{
		Name:     "write",
		Prefixes: []string{PrefixWrite, PrefixRead, PrefixKazooLock, PrefixKazooRead},
		Policy:   readWrite,
	}
}

// Semaphore is the kind of lock of package semaphore while its limit is maxLeases: each node ahead weighs what it asks
// for, and what remains ahead of a node may be maxLeases less what the node asks for. If maxLeases is 0, no node holds.
//
// It is for pages and tools. To take leases use package semaphore, whose users agree on a limit.
func Semaphore(maxLeases int) *Kind {
	return &Kind{
		Name: "semaphore", Prefixes: []string{PrefixLease},
		Policy: func(me Node) Policy { return LeasePolicy(me, maxLeases) },
	}
}

// LeasePolicy is the policy of a contender for a semaphore with a limit.
func LeasePolicy(me Node, maxLeases int) Policy {
	return Policy{Weight: func(ahead Node) int { return ahead.Weight }, Slack: maxLeases - me.Weight}
}

func exclusive(Node) Policy { return Policy{} }

// readWrite lets readers wait for writers, and writers for all.
func readWrite(me Node) Policy {
	p := Policy{Weight: func(ahead Node) int {
		if writes(me) || writes(ahead) {
			return 1
		}
		return 0
	}}
	if writes(me) { // a downgrade puts a reader in the writer's place, which matters to writers only
		p.Replaces = func(ahead Node) bool { return ahead.Prefix == PrefixWrite }
	}
	return p
}

func writes(n Node) bool { return n.Prefix == PrefixWrite || n.Prefix == PrefixKazooLock }

// Holders says which contenders hold a lock of a kind, by the names in a listing of its directory, and by the data of
// the directory if the kind has a [Configuration]. The nodes can be in any order. The answers are in the same order.
// Holders does no I/O. [Queue.Contenders] does both, and reads the nodes.
//
// A holder that a higher limit has let in may not count as one.
//
// A bad kind is an error that matches [session.ErrInvalid]. Other errors are those of the kind's Configuration.
func Holders(kind *Kind, nodes []Node, config Config) ([]bool, error) {
	if err := kind.Check(); err != nil {
		return nil, errQueue(err)
	}
	out := make([]bool, len(nodes))
	for i, n := range nodes {
		var err error
		if out[i], err = holds(kind, n, nodes, config, func(int) bool { return false }); err != nil {
			return nil, errQueue(err)
		}
	}
	return out, nil
}

// holds reports whether a contender holds the lock. A node that has left since all were listed is in nobody's way, unless
// another node may have taken its place. Nobody can have come ahead meanwhile.
func holds(kind *Kind, me Node, all []Node, config Config, left func(i int) bool) (bool, error) {
	p, err := kind.policy(me, config)
	if err != nil {
		return false, err
	}
	ahead := 0
	for i, n := range all {
		if n.Sequence >= me.Sequence {
			continue
		}
		if w := p.weigh(n); w > 0 && (!left(i) || p.replaces(n)) {
			if ahead = addWeights(ahead, w); ahead > p.Slack {
				break
			}
		}
	}
	return ahead <= p.Slack, nil
}
