package zktest

import (
	"errors"
	"fmt"
	"net"
	"strconv"
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
	e.links[from][to].cut(ToServer)
	e.links[to][from].cut(ToClient)
	return nil
}

// HealPartitions ends what [Ensemble.Partition] and [Ensemble.PartitionOneWay] began.
func (e *Ensemble) HealPartitions() {
	e.made()
	for _, row := range e.links {
		for _, l := range row {
			if l != nil {
				l.heal()
			}
		}
	}
}

// peerLink carries the connections that server i has made to server j.
type peerLink struct {
	quorum, election *forwarder
	pings            pingWatchers
}

func (l *peerLink) cut(d Direction) {
	l.quorum.cut(d)
	l.election.cut(d)
}

func (l *peerLink) heal() {
	l.quorum.heal()
	l.election.heal()
}

func (l *peerLink) close() error { return errors.Join(l.quorum.close(), l.election.close()) }

// linkPeers makes the links of an ensemble whose servers have the given ports: element
// [i][j] is from i to j, and nil where they are the same.
func linkPeers(ports []nodePorts) ([][]*peerLink, error) {
	links := make([][]*peerLink, len(ports))
	for i := range ports {
		links[i] = make([]*peerLink, len(ports))
		for j, p := range ports {
			if i == j {
				continue
			}
			l, err := linkTo(p)
			if err != nil {
				return nil, errors.Join(err, closeLinks(links))
			}
			links[i][j] = l
		}
	}
	// A server says at which address it is to be called back, which is its real one: let
	// it be that of the link which leads back.
	for i, row := range links {
		for j, l := range row {
			if l != nil {
				l.election.start(callBackAt(links[j][i].election.addr()), nil)
				l.quorum.start(l.pings.observe(true), l.pings.observe(false))
			}
		}
	}
	return links, nil
}

func linkTo(p nodePorts) (*peerLink, error) {
	quorum, err := newForwarder(local(p.quorum))
	if err != nil {
		return nil, err
	}
	election, err := newForwarder(local(p.election))
	if err != nil {
		return nil, errors.Join(err, quorum.close())
	}
	return &peerLink{quorum: quorum, election: election}, nil
}

func closeLinks(links [][]*peerLink) error {
	var errs []error
	for _, row := range links {
		for _, l := range row {
			if l != nil {
				errs = append(errs, l.close())
			}
		}
	}
	return errors.Join(errs...)
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// peerPorts returns the ports at which server i finds all of them: itself at its own, the
// others at those of its links, if there are any.
func peerPorts(i int, ports []nodePorts, links [][]*peerLink) []nodePorts {
	if links == nil {
		return ports
	}
	seen := make([]nodePorts, len(ports))
	for j, p := range ports {
		seen[j] = p
		if l := links[i][j]; l != nil {
			seen[j].quorum, seen[j].election = l.quorum.port(), l.election.port()
		}
	}
	return seen
}
