package zktest

import (
	"errors"
	"fmt"
)

// errNoLinks says that the servers cannot be cut off from each other.
var errNoLinks = errors.New("zktest: the servers of this ensemble speak to each other directly: start it with Partitions")

// Partitions has the servers of an ensemble connect to each other through this process. Then
// [Ensemble.Partition] can cut them off from each other, and [Ensemble.OnPing] sees their pings. It
// does not affect clients; put a [Proxy] in front of a server for that. By default servers connect to
// each other directly.
func Partitions() RealOption {
	return realOption(func(c *realConfig) error { c.partitions = true; return nil })
}

// Partition cuts servers i and j off from each other until [Ensemble.HealPartitions]. Connections
// between them stay open. What they send does not arrive, and neither server learns that a connection
// was closed. All of that arrives late and in order when the partition heals. It is an error if the
// ensemble was started without the option [Partitions], or if i is j.
//
// Bytes that are being written when Partition is called still arrive. To cut at an exact place, call it
// from a function given to [Ensemble.OnPing].
func (e *Ensemble) Partition(i, j int) error {
	e.made()
	return errors.Join(e.PartitionOneWay(i, j), e.PartitionOneWay(j, i))
}

// PartitionOneWay is [Ensemble.Partition] in one direction: what server from sends to server to does
// not arrive. The two servers cannot make a new connection to each other.
func (e *Ensemble) PartitionOneWay(from, to int) error {
	e.made()
	if e.links == nil {
		return errNoLinks
	}
	if from == to {
		return fmt.Errorf("zktest: partition of server %d from itself", from)
	}
	e.links.Cut(from, to)
	return nil
}

// HealPartitions ends every [Ensemble.Partition] and [Ensemble.PartitionOneWay].
func (e *Ensemble) HealPartitions() {
	e.made()
	e.links.Heal()
}

// A PeerPing is a leader's ping of another server, sent twice a tick, or that server's
// answer to it.
type PeerPing struct {
	Leader, Server int
	Answer         bool

	// Touched holds, in an answer, the ids of the sessions that the server has heard of since
	// its last answer. After a client's handshake, this list is the only way in which the leader
	// learns that a client of another server is alive. The session's timeout counts from the
	// moment at which the leader reads the list.
	Touched []int64
}

// OnPing has f called for every ping between the leader and another server, and for every answer,
// before it is passed on. While f runs, nothing else passes in that direction between the two servers.
// If f calls [Ensemble.Partition] or [Ensemble.PartitionOneWay], the ping is the first message that
// does not arrive. f may be called for several servers at once, and once more after stop was called.
// It is an error if the ensemble was started without the option [Partitions].
//
// If the servers speak TLS or SASL to each other, f is never called.
func (e *Ensemble) OnPing(f func(PeerPing)) (stop func(), err error) {
	e.made()
	if e.links == nil {
		return nil, errNoLinks
	}
	return e.links.OnPing(func(leader, server int, answer bool, touched []int64) {
		f(PeerPing{Leader: leader, Server: server, Answer: answer, Touched: touched})
	}), nil
}
