// Package peerlink carries what the servers of a real ensemble say to each other, so that
// tests can hold it back and see the pings in it.
//
// There are two links between any two servers, one for each that may have opened the
// connection. The servers' configuration files name the links' ports in place of the servers'
// own.
package peerlink

import (
	"errors"
	"net"
	"strconv"

	"github.com/turnstile-go/turnstile/zktest/internal/javaserver"
)

// Links are the links of an ensemble. Element [i][j] carries the connections that server i has
// made to server j. It is nil where i is j. All methods are safe for concurrent use.
type Links [][]*link

// link carries the connections from one server to another.
type link struct {
	quorum, election *forwarder
	pings            pingWatchers
}

// New makes the links of an ensemble whose servers have these ports.
func New(ports []javaserver.Ports) (Links, error) {
	links := make(Links, len(ports))
	for i := range ports {
		links[i] = make([]*link, len(ports))
		for j, p := range ports {
			if i == j {
				continue
			}
			l, err := newLink(p)
			if err != nil {
				return nil, errors.Join(err, links.Close())
			}
			links[i][j] = l
		}
	}
	// When a server connects for an election it names the address at which the other server
	// can call it back. Replace its own address with that of the link in that direction.
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

// newLink makes a link to the server with these ports.
func newLink(p javaserver.Ports) (*link, error) {
	quorum, err := newForwarder(local(p.Quorum))
	if err != nil {
		return nil, err
	}
	election, err := newForwarder(local(p.Election))
	if err != nil {
		return nil, errors.Join(err, quorum.close())
	}
	return &link{quorum: quorum, election: election}, nil
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Ports returns the ports at which server i finds all servers: its own ports for itself, and
// the ports of its links for the others. Without links it returns the servers' own ports.
func (ls Links) Ports(i int, ports []javaserver.Ports) []javaserver.Ports {
	if ls == nil {
		return ports
	}
	seen := make([]javaserver.Ports, len(ports))
	for j, p := range ports {
		seen[j] = p
		if l := ls[i][j]; l != nil {
			seen[j].Quorum, seen[j].Election = l.quorum.port(), l.election.port()
		}
	}
	return seen
}

// Cut holds back everything that server from sends to server to, until [Links.Heal].
func (ls Links) Cut(from, to int) {
	ls[from][to].cut(up)
	ls[to][from].cut(down)
}

// Heal ends every [Links.Cut].
func (ls Links) Heal() {
	for _, l := range ls.all() {
		l.quorum.heal()
		l.election.heal()
	}
}

// OnPing has f called for every ping between the leader and another server, and for every
// answer, before it is passed on. touched holds the sessions that an answer lists. f may be
// called once more after stop was called.
func (ls Links) OnPing(f func(leader, server int, answer bool, touched []int64)) (stop func()) {
	var stops []func()
	for i, row := range ls {
		for j, l := range row {
			if l == nil {
				continue
			}
			stops = append(stops, l.pings.add(func(answer bool, touched []int64) { f(j, i, answer, touched) }))
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// Close closes all connections, and returns once nothing of the links runs any more.
func (ls Links) Close() error {
	var errs []error
	for _, l := range ls.all() {
		errs = append(errs, l.quorum.close(), l.election.close())
	}
	return errors.Join(errs...)
}

// all returns the links without the nils.
func (ls Links) all() []*link {
	var all []*link
	for _, row := range ls {
		for _, l := range row {
			if l != nil {
				all = append(all, l)
			}
		}
	}
	return all
}

func (l *link) cut(d direction) {
	l.quorum.cut(d)
	l.election.cut(d)
}
