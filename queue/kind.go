package queue

import (
	"math"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Policy says when one contender may go. Its functions must be pure.
type Policy struct {
	// Weight returns what a node ahead weighs, and 0 or less if it does not block. Default: 1.
	Weight func(ahead Node) int
	// Slack is the weight that may remain ahead when the contender goes: 0 for a mutex, for a semaphore the leases
	// less those that it asks for. If it is negative, the acquisition fails with [session.ErrInvalid].
	Slack int
	// Replaces reports whether a node ahead may leave another one with its sequence number in its place, as a writer
	// that becomes a reader. Then its end grants nothing. Default: none does.
	Replaces func(ahead Node) bool
}

// Kind is a kind of lock: with a Policy or a Configuration. It must not be changed once it is used.
type Kind struct {
	// Name is one word for messages and telemetry, such as mutex.
	Name string
	// Prefixes are those of the kind's contenders: some of the constants, or words that end in - or _. A contender
	// with one of the other constants is a conflict. All other children are ignored.
	Prefixes []string
	// Policy returns the policy of a contender. It depends on me alone.
	Policy func(me Node) Policy

	// Configuration replaces Policy: see [Configuration].
	Configuration *Configuration
}

// Config is the data of a queue's directory: see [Configuration].
type Config struct {
	Data    []byte
	Changed int64 // the zxid that set the data
	Version int32 // of the data
}

// Configuration makes a kind of lock depend on the data of the directory, as package semaphore does. When that
// changes, waiting contenders decide again. Such a lock keeps no places.
//
// A client that makes the lock stricter first acquires what is to go, and sets the data while it holds that. So there
// are never more holders than the data allows.
type Configuration struct {
	// Config is what all users agree on. A contender that finds no data sets it.
	Config []byte
	// Policy returns the policy of a contender, or the acquisition's error, by its arguments alone.
	Policy func(me Node, config Config) (Policy, error)
	// Rivals are names of directories below the queue's in which a contender is a conflict. Our contenders look there
	// in this order, once their nodes stand.
	Rivals []string
}

// Check returns an error that matches [session.ErrInvalid] if the kind cannot be used.
func (k *Kind) Check() error {
	switch {
	case k == nil || len(k.Prefixes) == 0:
		return misuse.Invalidf("a kind of lock needs prefixes")
	case (k.Policy == nil) == (k.Configuration == nil):
		return misuse.Invalidf("a kind of lock needs a policy or a configuration, and cannot have both")
	case k.Configuration != nil && (len(k.Configuration.Config) == 0 || k.Configuration.Policy == nil):
		return misuse.Invalidf("a configuration needs data and a policy")
	}
	// A single - or _ at the end tells the prefix from a negative number.
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

func (k *Kind) policy(n Node, c Config) (Policy, error) {
	if k.Configuration != nil {
		return k.Configuration.Policy(n, c)
	}
	return k.Policy(n), nil
}

func (p *Policy) weigh(ahead Node) int {
	if p.Weight == nil {
		return 1
	}
	return max(0, p.Weight(ahead))
}

func (p *Policy) replaces(ahead Node) bool { return p.Replaces != nil && p.Replaces(ahead) }

func (k *Kind) blocks(ahead, behind Node) bool {
	if k.Configuration != nil {
		return true
	}
	p := k.Policy(behind)
	return p.weigh(ahead) > 0
}

func addWeights(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// Mutex is the kind of package zklock, Curator's InterProcessMutex and kazoo's Lock: no node may be ahead.
func Mutex() *Kind {
	return &Kind{
		Name:     "mutex",
		Prefixes: []string{PrefixLock, PrefixKazooLock},
		Policy:   func(Node) Policy { return Policy{} },
	}
}

// Reader is the kind of readers of package rwlock, Curator's InterProcessReadWriteLock and kazoo's ReadLock: no
// writer may be ahead.
func Reader() *Kind {
	return &Kind{
		Name:     "read",
		Prefixes: []string{PrefixRead, PrefixWrite, PrefixKazooLock, PrefixKazooRead},
		Policy:   readWrite,
	}
}

// Writer is the kind of writers of these locks: no node may be ahead.
func Writer() *Kind {
	return &Kind{
		Name:     "write",
		Prefixes: []string{PrefixWrite, PrefixRead, PrefixKazooLock, PrefixKazooRead},
		Policy:   readWrite,
	}
}

// Semaphore is the kind of package semaphore while its limit is maxLeases, for tools. With 0 leases no node holds.
func Semaphore(maxLeases int) *Kind {
	return &Kind{
		Name: "semaphore", Prefixes: []string{PrefixLease},
		Policy: func(me Node) Policy { return LeasePolicy(me, maxLeases) },
	}
}

// LeasePolicy is the policy of a contender for a semaphore.
func LeasePolicy(me Node, maxLeases int) Policy {
	return Policy{Weight: func(ahead Node) int { return ahead.Weight }, Slack: maxLeases - me.Weight}
}

func readWrite(me Node) Policy {
	p := Policy{Weight: func(ahead Node) int {
		if writes(me) || writes(ahead) {
			return 1
		}
		return 0
	}}
	if writes(me) { // a downgrade leaves a reader, which is in the way of writers only
		p.Replaces = func(ahead Node) bool { return ahead.Prefix == PrefixWrite }
	}
	return p
}

func writes(n Node) bool { return n.Prefix == PrefixWrite || n.Prefix == PrefixKazooLock }

// Holders says which nodes of a directory, in any order, hold a lock of the kind: see Holder of [Contender]. It does
// no I/O. It fails with [session.ErrInvalid] for a bad kind, and with errors of its [Configuration].
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

// holds takes a node that has left since the listing for out of the way, unless another may have its place.
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
