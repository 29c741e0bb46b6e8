package rwlock

import "github.com/turnstile-go/turnstile/kinds"

// The two kinds see the same contenders: Curator's, whose names this package uses, and kazoo's. They
// differ in the first prefix, which is that of their own nodes.
var (
	writing = &kinds.Kind{
		Name:     "write",
		Prefixes: []string{kinds.PrefixWrite, kinds.PrefixRead, kinds.PrefixKazooLock, kinds.PrefixKazooRead},
		Policy:   policy,
	}
	reading = &kinds.Kind{
		Name:     "read",
		Prefixes: []string{kinds.PrefixRead, kinds.PrefixWrite, kinds.PrefixKazooLock, kinds.PrefixKazooRead},
		Policy:   policy,
	}
)

// policy lets readers wait for writers, and writers for all. A holder that downgrades has two nodes of
// one sequence. Neither of them waits for the other, whichever comes first by name.
func policy(me kinds.Node) kinds.Policy {
	p := kinds.Policy{Weight: func(ahead kinds.Node) int {
		if ahead.Sequence == me.Sequence || !writes(me) && !writes(ahead) {
			return 0
		}
		return 1
	}}
	if writes(me) {
		// A downgrade puts a reader in the writer's place, which matters to writers only.
		p.Replaces = func(ahead kinds.Node) bool { return ahead.Prefix == kinds.PrefixWrite }
	}
	return p
}

func writes(n kinds.Node) bool {
	return n.Prefix == kinds.PrefixWrite || n.Prefix == kinds.PrefixKazooLock
}
