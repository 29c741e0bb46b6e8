package quorum

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// State is the state of all servers of a [Server], and of the network between
// them. It belongs to the goroutine in run: everybody else sends it frames and
// functions.
type State struct {
	conf     Config
	inbox    chan input
	commands chan command
	done     chan struct{} // closed by Server.Close

	start    time.Time
	agenda   agenda
	members  []*Member
	routes   [][]*route    // by sender and receiver
	changed  chan struct{} // closed, and replaced, when there may be a leader again
	peers    map[*Peer]struct{}
	ordinals int64

	fed      int64  // the latest transaction that any server has applied
	recent   []*txn // those up to fed that not all servers have applied yet, oldest first
	laggards map[int64]*laggard

	CommitDelay time.Duration
	PingLag     time.Duration
	EagerACL    bool
	Throttle    func(frame []byte, session int64, at time.Time) bool // nil: nothing
}

var ErrClosed = errors.New("zktest: server is closed")

// command is a function for the run loop to call.
type command struct {
	do   func(*State)
	over chan struct{} // closed once do, and everything that follows without delay, is done
}

func New(conf Config) *State {
	st := &State{
		conf:     conf,
		inbox:    make(chan input),
		commands: make(chan command),
		done:     make(chan struct{}),
		start:    time.Now(),
		changed:  make(chan struct{}),
		peers:    make(map[*Peer]struct{}),
		laggards: make(map[int64]*laggard),
		PingLag:  20 * time.Millisecond,
	}
	for i := range conf.Servers {
		st.members = append(st.members, newMember(st, i))
	}
	st.routes = newRoutes(conf.Servers)
	st.elect(st.members)
	st.tick()
	return st
}

// Run is the loop that owns the state. Events that are due run before input that
// comes in at the same time, so that a test in a bubble can be repeated.
func (st *State) Run() {
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	var set time.Time
	for {
		st.agenda.runDue()
		if at, ok := st.agenda.next(); ok && !at.Equal(set) {
			alarm.Reset(time.Until(at))
			set = at
		}
		select {
		case in := <-st.inbox:
			st.agenda.runDue()
			st.handle(in)
		case c := <-st.commands:
			st.agenda.runDue()
			c.do(st)
			st.agenda.runDue()
			close(c.over)
		case <-alarm.C:
			set = time.Time{}
		case <-st.done:
			return
		}
	}
}

// Do has the run loop call f, and waits until it has, and until all is done that
// follows from that without delay.
func (st *State) Do(ctx context.Context, f func(*State)) error {
	c := command{do: f, over: make(chan struct{})}
	select {
	case st.commands <- c:
		<-c.over
		return nil
	case <-st.done:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Connect makes the server's end of a client's connection. It returns nil if the server is
// stopped.
func (st *State) Connect(server int, addr string) *Peer {
	m := st.members[server]
	if m.Stopped {
		return nil
	}
	st.ordinals++
	p := newPeer(m, st.ordinals, addr)
	st.peers[p] = struct{}{}
	return p
}

// Close ends run. Later calls of do fail.
func (st *State) Close() { close(st.done) }

// after has the run loop call f after d. If d is 0, that is once the loop has
// finished what it is doing.
func (st *State) after(d time.Duration, f func()) { st.agenda.add(time.Now().Add(d), f) }

// tick is for what happens once a tick, whoever leads.
func (st *State) tick() {
	st.advanceAll()
	st.after(st.conf.Tick, st.tick)
}

// patience is after how long a silence servers give each other up.
func (st *State) patience() time.Duration {
	return time.Duration(st.conf.SyncLimit) * st.conf.Tick
}

// quorum returns how many servers have to log a transaction.
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

// Stopped reports whether server i is stopped.
func (st *State) Stopped(i int) bool { return st.members[i].Stopped }

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

// Epoch returns the epoch of the latest election.
func (st *State) Epoch() int64 {
	latest := int64(0)
	for _, m := range st.members {
		latest = max(latest, m.epoch)
	}
	return latest
}

// spokesman returns the server that is asked about the ensemble as a whole: the leader, or the
// server that has applied most if there is none, or only one that does not know yet that
// another was elected after it.
func (st *State) spokesman() *Member {
	if l := st.authority(); l != nil && l.m.epoch == st.Epoch() {
		return l.m
	}
	return slices.MaxFunc(st.members, func(a, b *Member) int { return cmp.Compare(a.tree.Zxid, b.tree.Zxid) })
}

// announce wakes the callers of awaitLeader.
func (st *State) announce() {
	close(st.changed)
	st.changed = make(chan struct{})
}

// connections returns the clients' connections to some servers, the oldest first.
func (st *State) connections(of ...*Member) []*Peer {
	all := slices.DeleteFunc(slices.Collect(maps.Keys(st.peers)), func(p *Peer) bool { return !slices.Contains(of, p.at) })
	slices.SortFunc(all, func(a, b *Peer) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return all
}

// peerOf returns the connection of a session, or nil. If several servers believe
// that they have it, the latest one counts.
func (st *State) peerOf(session int64) *Peer {
	var last *Peer
	for _, m := range st.members {
		if p := m.clients[session]; p != nil && p.ready && (last == nil || p.ordinal > last.ordinal) {
			last = p
		}
	}
	return last
}

// handle processes a frame, or the end of a client's frames, unless the server
// stands still.
func (st *State) handle(in input) {
	p := in.from
	switch {
	case p.gone:
	case p.at.held:
		p.at.overdue.inputs = append(p.at.overdue.inputs, func() { p.receive(in.frame) })
	default:
		p.receive(in.frame)
	}
}

// hangUp closes a connection; what was sent before still arrives.
func (st *State) hangUp(p *Peer) {
	if p.gone {
		return
	}
	p.gone = true
	close(p.hungUp)
	p.out.put(nil)
	if p.view != nil {
		p.view.drop(p)
	}
	if p.at.clients[p.session] == p {
		delete(p.at.clients, p.session)
	}
	delete(st.peers, p)
	p.at.received += p.received
	p.at.sent += p.sent
}
