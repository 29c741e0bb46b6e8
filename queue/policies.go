package queue

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
