package rwlock

import "github.com/turnstile-go/turnstile/queue"

// The two kinds see the same contenders: Curator's, whose names this package uses, and kazoo's. They
// differ in the first prefix, which is that of their own nodes.
var (
	writing = &queue.Kind{
		Name:     "write",
		Prefixes: []string{queue.PrefixWrite, queue.PrefixRead, queue.PrefixKazooLock, queue.PrefixKazooRead},
		Policy:   policy,
	}
	reading = &queue.Kind{
		Name:     "read",
		Prefixes: []string{queue.PrefixRead, queue.PrefixWrite, queue.PrefixKazooLock, queue.PrefixKazooRead},
		Policy:   policy,
	}
)

// policy lets readers wait for writers, and writers for all. A holder that downgrades has two nodes of
// one sequence. Neither of them waits for the other, whichever comes first by name.
func policy(me queue.Node) queue.Policy {
	p := queue.Policy{Weight: func(ahead queue.Node) int {
		if ahead.Sequence == me.Sequence || !writes(me) && !writes(ahead) {
			return 0
		}
		return 1
	}}
	if writes(me) {
		// A downgrade puts a reader in the writer's place, which matters to writers only.
		p.Replaces = func(ahead queue.Node) bool { return ahead.Prefix == queue.PrefixWrite }
	}
	return p
}

func writes(n queue.Node) bool {
	return n.Prefix == queue.PrefixWrite || n.Prefix == queue.PrefixKazooLock
}
