package rwlock

import "github.com/turnstile-go/turnstile/queue"

// The two kinds differ in what their own nodes are called, which comes first, and see the
// same contenders: Curator's, which are ours, and kazoo's.
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

// policy: readers wait for writers, writers for all; but who downgrades has two nodes of
// one sequence, and is not in its own way, whichever of them comes first by name.
func policy(me queue.Node) queue.Policy {
	p := queue.Policy{Weight: func(ahead queue.Node) int {
		if ahead.Sequence == me.Sequence || !writes(me) && !writes(ahead) {
			return 0
		}
		return 1
	}}
	if writes(me) {
		// A downgrade puts a reader in the writer's place. That is no news to readers.
		p.Replaces = func(ahead queue.Node) bool { return ahead.Prefix == queue.PrefixWrite }
	}
	return p
}

func writes(n queue.Node) bool {
	return n.Prefix == queue.PrefixWrite || n.Prefix == queue.PrefixKazooLock
}
