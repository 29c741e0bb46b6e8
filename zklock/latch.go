package zklock

import (
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
)

// latch is the kind of a mutex whose nodes have the names of Curator's LeaderLatch.
var latch = &kinds.Kind{
	Name:     "mutex",
	Prefixes: []string{kinds.PrefixLatch},
	Policy:   queue.Mutex().Policy,
}

// WithLeaderLatch shares the mutex with Curator's LeaderLatch at the same path: the holder is the leader
// that the latches see. The nodes of the mutex are named as those of a LeaderLatch, which are different
// from those of Curator's other locks. So the mutex is not shared with InterProcessMutex or zk.Lock, nor
// with a Mutex that does not have this option. At a path where it finds nodes of the other kind, a call
// fails with [queue.ErrConflict]. Curator does not check.
//
// A LeaderLatch takes the data of a node for the id of a participant. The option cannot be
// combined with [WithPrefixes]. Default: the mutex is shared with InterProcessMutex.
//
// Package [github.com/turnstile-go/turnstile/election] uses this option to elect a leader.
func WithLeaderLatch() Option {
	return option(func(c *config) error {
		c.latch = true
		return nil
	})
}
