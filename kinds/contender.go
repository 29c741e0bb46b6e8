package kinds

import "time"

// Contender is a contender that holds or waits.
type Contender struct {
	Path     string // of its node
	Sequence int32  // lower is earlier
	Data     []byte // of its node
	// Holder reports whether the contender may go, by this listing and the present
	// configuration. A holder that a higher limit has let in may not count as one.
	Holder bool

	// ID says who contends, as far as the data tells: host/pid for the data that this module
	// writes by default, otherwise the data itself if it is a short text, as Curator's and kazoo's
	// are. It is "" if the data is something else, and after a [RevokeMessage] has replaced it.
	ID string
	// Label is the label of the acquisition, as WithLabel of package queue sets it, or "".
	Label string
	// Traceparent is the W3C traceparent of the acquisition, or "".
	Traceparent string
	// Since is when the node was created, by the clock of the ensemble's leader. For a holder, that
	// is when it came to the queue, and not when it got the lock.
	Since time.Time
	// Session is the id of the ZooKeeper session whose end deletes the node. It is 0 for a node
	// that is not ephemeral. No client of this module makes such a node: it was left by hand, and
	// stays until somebody deletes it.
	Session int64
	// Token is the fencing token of the node: see Token of a queue.Lease. A reader that was a writer before
	// has a lower one, that of the writer's node.
	Token int64

	// Own reports whether the node belongs to the session of this manager, and so to this process.
	Own bool
	// HeldSince is when this process got the lock that it holds by the node. It is the zero time if
	// the node is not its Own, or is not held. After a hand-over within the process it is the time of
	// the hand-over.
	HeldSince time.Time
	// Kept reports whether this process keeps the place although nobody holds the lock, in case it wants
	// the lock again: see queue.WithLazyRelease. It is false if the node is not its Own.
	Kept bool
}

// RevokeMessage is the node data that asks a holder to give up its lease. Curator uses the same.
const RevokeMessage = "__REVOKE__"
