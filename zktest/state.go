package zktest

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// state is the state of all servers of a [Server], and of the network between
// them. It belongs to the goroutine in run: everybody else sends it frames and
// functions.
type state struct {
	conf     config
	inbox    chan input
	commands chan command
	done     chan struct{} // closed by Server.Close

	start    time.Time
	agenda   agenda
	members  []*member
	routes   [][]*route    // by sender and receiver
	changed  chan struct{} // closed, and replaced, when there may be a leader again
	peers    map[*peer]struct{}
	ordinals int64

	fed      int64  // the latest transaction that any server has applied
	recent   []*txn // those up to fed that not all servers have applied yet, oldest first
	laggards map[int64]*laggard

	commitDelay time.Duration
	pingLag     time.Duration
	eagerACL    bool
	throttle    Match // nil: nothing
}

// command is a function for the run loop to call.
type command struct {
	do   func(*state)
	over chan struct{} // closed once do, and everything that follows without delay, is done
}

func newState(conf config) *state {
	st := &state{
		conf:     conf,
		inbox:    make(chan input),
		commands: make(chan command),
		done:     make(chan struct{}),
		start:    time.Now(),
		changed:  make(chan struct{}),
		peers:    make(map[*peer]struct{}),
		laggards: make(map[int64]*laggard),
		pingLag:  20 * time.Millisecond,
	}
	for i := range conf.servers {
		st.members = append(st.members, newMember(st, i))
	}
	st.routes = newRoutes(conf.servers)
	st.elect(st.members)
	st.tick()
	return st
}

// run is the loop that owns the state. Events that are due run before input that
// comes in at the same time, so that a test in a bubble can be repeated.
func (st *state) run() {
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

// after has the run loop call f after d. If d is 0, that is once the loop has
// finished what it is doing.
func (st *state) after(d time.Duration, f func()) { st.agenda.add(time.Now().Add(d), f) }

// tick is for what happens once a tick, whoever leads.
func (st *state) tick() {
	st.advanceAll()
	st.after(st.conf.tick, st.tick)
}

// patience is after how long a silence servers give each other up.
func (st *state) patience() time.Duration {
	return time.Duration(st.conf.syncLimit) * st.conf.tick
}

// quorum returns how many servers have to log a transaction.
func (st *state) quorum() int { return len(st.members)/2 + 1 }

// authority returns the leadership of the server that leads, or nil. If a deposed
// leader still believes that it leads, the one that was elected later counts.
func (st *state) authority() *leadership {
	var newest *leadership
	for _, m := range st.members {
		if l := m.lead; l != nil && (newest == nil || m.epoch > newest.m.epoch) {
			newest = l
		}
	}
	return newest
}

// epoch returns the epoch of the latest election.
func (st *state) epoch() int64 {
	latest := int64(0)
	for _, m := range st.members {
		latest = max(latest, m.epoch)
	}
	return latest
}

// spokesman returns the server that is asked about the ensemble as a whole: the leader, or the
// server that has applied most if there is none, or only one that does not know yet that
// another was elected after it.
func (st *state) spokesman() *member {
	if l := st.authority(); l != nil && l.m.epoch == st.epoch() {
		return l.m
	}
	return slices.MaxFunc(st.members, func(a, b *member) int { return cmp.Compare(a.tree.Zxid, b.tree.Zxid) })
}

// announce wakes the callers of awaitLeader.
func (st *state) announce() {
	close(st.changed)
	st.changed = make(chan struct{})
}

// connections returns the clients' connections to some servers, the oldest first.
func (st *state) connections(of ...*member) []*peer {
	all := slices.DeleteFunc(slices.Collect(maps.Keys(st.peers)), func(p *peer) bool { return !slices.Contains(of, p.at) })
	slices.SortFunc(all, func(a, b *peer) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return all
}

// peerOf returns the connection of a session, or nil. If several servers believe
// that they have it, the latest one counts.
func (st *state) peerOf(session int64) *peer {
	var last *peer
	for _, m := range st.members {
		if p := m.clients[session]; p != nil && p.ready && (last == nil || p.ordinal > last.ordinal) {
			last = p
		}
	}
	return last
}

// handle processes a frame, or the end of a client's frames, unless the server
// stands still.
func (st *state) handle(in input) {
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
func (st *state) hangUp(p *peer) {
	if p.gone {
		return
	}
	p.gone = true
	close(p.hungUp)
	p.out.put(item{})
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
