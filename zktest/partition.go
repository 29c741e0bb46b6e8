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
// [Ensemble.Partition] can cut them off from one another. Clients are not concerned; for
// them there is [Proxy]. The default is that servers speak to each other directly.
func Partitions() RealOption {
	return func(c *realConfig) { c.partitions = true }
}

// Partition cuts servers i and j off from each other until [Ensemble.HealPartitions].
// Connections between them stay open; nothing that is sent arrives, nor the news that a
// connection was closed. It arrives, late and in order, when healed. It is an error
// without the option [Partitions], and if i is j.
func (e *Ensemble) Partition(i, j int) error {
	if e.links == nil {
		return errNoLinks
	}
	if i == j {
		return fmt.Errorf("zktest: partition of server %d from itself", i)
	}
	e.links[i][j].setCut(true)
	e.links[j][i].setCut(true)
	return nil
}

// HealPartitions ends all that [Ensemble.Partition] began.
func (e *Ensemble) HealPartitions() {
	for _, row := range e.links {
		for _, l := range row {
			if l != nil {
				l.setCut(false)
			}
		}
	}
}

// peerLink is all that server i sends to server j on connections it has made itself.
type peerLink struct{ quorum, election *forwarder }

func (l *peerLink) setCut(cut bool) {
	l.quorum.setCut(cut)
	l.election.setCut(cut)
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
				l.election.start(callBackAt(links[j][i].election.addr()))
				l.quorum.start(nil)
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
	return &peerLink{quorum, election}, nil
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
