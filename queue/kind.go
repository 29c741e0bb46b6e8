package queue

import (
	"math"

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
	for _, prefix := range k.Prefixes {
		if err := checkPrefix(prefix); err != nil {
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
