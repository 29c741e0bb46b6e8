// Package peerlink carries what the servers of a real ensemble say to each other, so that tests can hold it back and
// see the pings in it.
//
// There are two links between any two servers, one for each that may have opened the connection. The servers'
// configuration files name the links' ports in place of the servers' own.
package peerlink

import (
	"errors"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/switches"
	"github.com/turnstile-go/turnstile/zktest"
)

// Links are the links of an ensemble. All methods are safe for concurrent use once the servers run. A nil Links cuts
// nothing.
type Links struct {
	between [][]*link // the connections that server i has made to server j; nil where i is j
}

// link carries the connections from one server to another.
type link struct {
	quorum, election *forwarder
	onPing           atomic.Pointer[func(answer bool, touched []int64)]
}

// New returns links, and the option that has the servers of one ensemble use them. They are closed when the test ends.
func New(tb testing.TB) (*Links, zktest.RealOption) {
	ls := new(Links)
	tb.Cleanup(ls.close)
	return ls, switches.Between(ls.connect).(zktest.RealOption)
}

// connect makes the links of servers with these ports. It is called again, with other ports, if one was taken.
func (ls *Links) connect(ports []switches.Ports) ([][]switches.Ports, error) {
	ls.close()
	ls.between = make([][]*link, len(ports))
	seen := make([][]switches.Ports, len(ports))
	for i := range ports {
		ls.between[i], seen[i] = make([]*link, len(ports)), make([]switches.Ports, len(ports))
		for j, p := range ports {
			seen[i][j] = p
			if i == j {
				continue
			}
			l, err := newLink(p)
			if err != nil {
				return nil, err
			}
			ls.between[i][j] = l
			seen[i][j] = switches.Ports{Quorum: l.quorum.port(), Election: l.election.port()}
		}
	}
	// When a server connects for an election it names the address at which the other server can call it back. Replace
	// its own address with that of the link in that direction.
	for i, row := range ls.between {
		for j, l := range row {
			if l != nil {
				l.election.start(callBackAt(ls.between[j][i].election.addr()), nil)
				l.quorum.start(l.observe(true), l.observe(false))
			}
		}
	}
	return seen, nil
}

// newLink makes a link to the server with these ports.
func newLink(p switches.Ports) (*link, error) {
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

// Cut cuts servers i and j off from each other until [Links.Heal]. Connections between them stay open. What they send
// does not arrive, and neither server learns that a connection was closed. All of that arrives late and in order when
// the links heal.
//
// Bytes that are being written when Cut is called still arrive. To cut at an exact place, call it from a function given
// to [Links.OnPing].
func (ls *Links) Cut(i, j int) {
	ls.CutOneWay(i, j)
	ls.CutOneWay(j, i)
}

// CutOneWay is [Links.Cut] in one direction. The two servers cannot make a new connection to each other.
func (ls *Links) CutOneWay(from, to int) {
	ls.between[from][to].cut(up)
	ls.between[to][from].cut(down)
}

// Heal ends every cut.
func (ls *Links) Heal() {
	for _, l := range ls.all() {
		l.quorum.heal()
		l.election.heal()
	}
}

// A Ping is a leader's ping of another server, sent twice a tick, or that server's answer to it.
type Ping struct {
	Leader, Server int
	Answer         bool

	// Touched holds, in an answer, the ids of the sessions that the server has heard of since its last answer. After a
	// client's handshake, this list is the only way in which the leader learns that a client of another server is
	// alive. The session's timeout counts from the moment at which the leader reads the list.
	Touched []int64
}

// OnPing has f called for every ping between the leader and another server, and for every answer, before it is passed
// on. While f runs, nothing else passes in that direction between the two servers. If f cuts the link, the ping is the
// first message that does not arrive. f may be called for several servers at once, and once more after stop was called.
func (ls *Links) OnPing(f func(Ping)) (stop func()) {
	for i, row := range ls.between {
		for j, l := range row {
			if l != nil {
				observer := func(answer bool, touched []int64) { f(Ping{j, i, answer, touched}) }
				l.onPing.Store(&observer)
			}
		}
	}
	return func() {
		for _, l := range ls.all() {
			l.onPing.Store(nil)
		}
	}
}

// observe returns the relay for one direction of the link. A follower opens the connection to its leader, so pings in the
// direction of the target are answers.
func (l *link) observe(answer bool) relay {
	return func(to io.Writer, from io.Reader) error {
		return passPackets(to, from, func(data []byte) {
			if f := l.onPing.Load(); f != nil {
				(*f)(answer, touched(data))
			}
		})
	}
}

// close closes all connections, and returns once nothing of the links runs any more.
func (ls *Links) close() {
	for _, l := range ls.all() {
		_ = l.quorum.close()
		_ = l.election.close()
	}
}

// all returns the links without the nils.
func (ls *Links) all() []*link {
	var all []*link
	if ls == nil {
		return nil
	}
	for _, row := range ls.between {
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
