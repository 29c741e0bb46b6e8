package quorum

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/fifo"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// State is the state of all servers and of the network between them. It belongs to the goroutine in [State.Run].
type State struct {
	conf     Config
	inbox    chan input
	commands chan command
	done     chan struct{} // closed by Close

	start    time.Time
	agenda   agenda
	members  []*Member
	routes   [][]*route // by sender and receiver
	peers    map[*Peer]struct{}
	ordinals int64

	// How servers fail. Functions of Do may change these fields.
	CommitDelay time.Duration // that a server takes to write a transaction to disk
	PingLag     time.Duration // after a standstill, until a leader sends overdue pings

	// Throttle selects requests that servers refuse as if they were too busy. It may be nil.
	Throttle func(frame []byte, session int64) bool
}

// New returns the state of an ensemble at its start, in which the last server leads.
func New(conf Config) *State {
	st := &State{
		conf:     conf,
		inbox:    make(chan input),
		commands: make(chan command),
		done:     make(chan struct{}),
		start:    time.Now(),
		peers:    make(map[*Peer]struct{}),
		PingLag:  20 * time.Millisecond,
	}
	for i := range conf.Servers {
		st.members = append(st.members, newMember(st, i))
	}
	st.routes = newRoutes(conf.Servers)
	st.elect(st.members)
	return st
}

// Connect makes a server's end of the connection of a client at addr. It returns nil if the server is stopped.
func (st *State) Connect(server int, addr string) *Peer {
	m := st.members[server]
	if m.Stopped {
		return nil
	}
	st.ordinals++
	p := &Peer{
		st:      st,
		at:      m,
		ordinal: st.ordinals,
		out:     fifo.New[[]byte](0),
		closed:  make(chan struct{}),
		hungUp:  make(chan struct{}),
		ids:     []znode.Identity{{Scheme: "ip", ID: addr}},
	}
	st.peers[p] = struct{}{}
	return p
}

// patience is how long a silence servers tolerate of each other.
func (st *State) patience() time.Duration {
	return st.conf.real(time.Duration(st.conf.SyncLimit) * st.conf.Tick)
}

// quorum returns the number of servers that must log a transaction.
func (st *State) quorum() int { return len(st.members)/2 + 1 }

// authority returns the leadership of the server that leads, or nil. If a deposed
// leader still believes that it leads, the one that was elected later counts.
func (st *State) authority() *leadership {
	var newest *leadership
	for _, m := range st.members {
		if l := m.lead; l != nil && (newest == nil || m.epoch > newest.m.epoch) {
			newest = l
		}
	}
	return newest
}

// Member returns server i.
func (st *State) Member(i int) *Member { return st.members[i] }

// Leader returns the index of the server that leads. It returns false if there is none.
func (st *State) Leader() (int, bool) {
	if l := st.authority(); l != nil {
		return l.m.index, true
	}
	return 0, false
}

// ServerOf returns the index of the server that a session is connected to. It returns false if
// the session is not connected.
func (st *State) ServerOf(session int64) (int, bool) {
	if p := st.peerOf(session); p != nil {
		return p.at.index, true
	}
	return 0, false
}

// Expiry returns when the leader will expire a session that is not touched again. It returns
// false if the leader has expired it, and if no server leads.
func (st *State) Expiry(session int64) (time.Time, bool) {
	if l := st.authority(); l != nil {
		if t := l.tracker.sessions[session]; t != nil && !t.closing {
			return t.expires, true
		}
	}
	return time.Time{}, false
}

// spokesman returns the server that answers for the ensemble as a whole: the leader, or the server that
// has applied most if no server leads. A leader of an earlier epoch than the latest does not count.
func (st *State) spokesman() *Member {
	if l := st.authority(); l != nil && l.m.epoch == latestEpoch(st.members) {
		return l.m
	}
	return slices.MaxFunc(st.members, func(a, b *Member) int { return cmp.Compare(a.tree.Zxid, b.tree.Zxid) })
}

// connections returns the clients' connections to some servers, the oldest first.
func (st *State) connections(of ...*Member) []*Peer {
	all := slices.DeleteFunc(slices.Collect(maps.Keys(st.peers)), func(p *Peer) bool { return !slices.Contains(of, p.at) })
	slices.SortFunc(all, func(a, b *Peer) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return all
}

// peerOf returns the connection of a session, or nil. If it has connections to several servers, the latest one counts.
func (st *State) peerOf(session int64) *Peer {
	var last *Peer
	for _, m := range st.members {
		if p := m.clients[session]; p != nil && p.ready && (last == nil || p.ordinal > last.ordinal) {
			last = p
		}
	}
	return last
}

// hangUp closes a connection. Frames that were sent before still arrive.
func (st *State) hangUp(p *Peer) {
	if p.gone {
		return
	}
	p.gone = true
	close(p.hungUp)
	p.out.Push(nil, 0, nil)
	if p.view != nil {
		p.view.drop(p)
	}
	if p.at.clients[p.session] == p {
		delete(p.at.clients, p.session)
	}
	delete(st.peers, p)
}
