package zktest

import (
	"errors"
	"fmt"
)

// errNoLinks is why servers cannot be cut off from one another.
var errNoLinks = errors.New("zktest: the servers of this ensemble speak to each other directly: start it with Partitions")

// Partitions has the servers of an ensemble reach each other through this process, so that
// [Ensemble.Partition] can cut them off from one another and [Ensemble.OnPing] can watch
// them. It does not affect clients; put a [Proxy] in front of a server for those. The
// default is that servers speak to each other directly.
func Partitions() RealOption {
	return func(c *realConfig) { c.partitions = true }
}

// Partition cuts servers i and j off from each other until [Ensemble.HealPartitions].
// Connections between them stay open; nothing that is sent arrives, nor the news that a
// connection was closed. It arrives, late and in order, when healed. It is an error
// without the option [Partitions], and if i is j.
//
// Bytes that are being written when Partition is called still arrive. Call it from a
// function given to [Ensemble.OnPing] to cut at an exact place.
func (e *Ensemble) Partition(i, j int) error {
	e.made()
	return errors.Join(e.PartitionOneWay(i, j), e.PartitionOneWay(j, i))
}

// PartitionOneWay is [Ensemble.Partition] in one direction: what server from sends to
// server to does not arrive. No new connection can be made between the two.
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

// HealPartitions ends what [Ensemble.Partition] and [Ensemble.PartitionOneWay] began.
func (e *Ensemble) HealPartitions() {
	e.made()
	e.links.Heal()
}

// A PeerPing is a leader's ping of another server, sent twice a tick, or that server's
// answer to it.
type PeerPing struct {
	Leader, Server int
	Answer         bool

	// Touched holds, in an answer, the ids of the sessions that the server has heard of
	// since its last answer. From no other message does a leader learn that the client of
	// another server is alive, once that client is connected: it counts the session's
	// timeout from the moment at which it reads this list.
	Touched []int64
}

// OnPing has f called for every ping between the leader and another server, and for every
// answer, before it is passed on. While f runs, that direction of the link stands still. If
// f cuts the link, with [Ensemble.Partition] or [Ensemble.PartitionOneWay], the ping is the
// first thing that does not arrive. f may be called for several servers at once, and once
// more after stop was called. It is an error without the option [Partitions].
//
// Where servers speak TLS or SASL to each other, f is never called.
func (e *Ensemble) OnPing(f func(PeerPing)) (stop func(), err error) {
	e.made()
	if e.links == nil {
		return nil, errNoLinks
	}
	return e.links.OnPing(func(leader, server int, answer bool, touched []int64) {
		f(PeerPing{Leader: leader, Server: server, Answer: answer, Touched: touched})
	}), nil
}
