package kinds

import "github.com/turnstile-go/turnstile/internal/misuse"

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
// has a Policy or a Configuration. It must not be changed once it is used.
type Kind struct {
	// Name is one word for messages and telemetry, such as mutex, read, write or semaphore.
	Name string
	// Prefixes are the prefixes of the kind's contenders: some of the constants, or words of your
	// own that end in - or _. In the same directory, a contender with one of the constants that is
	// not a prefix of the kind is a conflict. All other children are ignored.
	Prefixes []string
	// Policy returns the policy of a contender. It must depend on me alone.
	Policy func(me Node) Policy

	// Configuration makes the lock depend on what all its users agree on, such as a limit. It takes
	// the place of Policy.
	Configuration *Configuration
}

// Check returns an error that matches session.ErrInvalid if the kind cannot be used. Every
// acquisition checks its kind; Check is for constructors that take prefixes from their callers. It
// does no I/O.
func (k *Kind) Check() error {
	if k == nil || len(k.Prefixes) == 0 {
		return misuse.Invalidf("a kind of lock needs prefixes")
	}
	if c := k.Configuration; c != nil && (len(c.Config) == 0 || c.Policy == nil) {
		return misuse.Invalidf("a configuration needs data and a policy")
	}
	if (k.Policy == nil) == (k.Configuration == nil) {
		return misuse.Invalidf("a kind of lock needs a policy or a configuration, and cannot have both")
	}
	for _, prefix := range k.Prefixes {
		if err := checkPrefix(prefix); err != nil {
			return err
		}
	}
	return nil
}
