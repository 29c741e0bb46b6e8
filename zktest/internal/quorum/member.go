package quorum

import (
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A Member is one server: a server alone, or one of an ensemble. It leads, or it
// follows, or it looks for a leader and serves no clients.
//
// A server alone is a leader without followers. So there is one way from a
// request to its answer, whatever the number of servers.
type Member struct {
	st    *State
	index int

	// What it has on disk. This outlives a stop.
	*replica           // what it has applied
	log      []*txn    // what it has accepted and not applied yet, oldest first
	epoch    int64     // of the last leader that it has accepted
	flushed  time.Time // when all of the log is on disk

	lead    *leadership // nil: it does not lead
	follow  *following  // nil: it does not follow
	since   time.Time   // when it began to look for a leader, if it does neither
	Stopped bool
	held    bool    // it stands still
	overdue overdue // what it will have to do when it continues

	clients map[int64]*Peer      // by session, from the first frame of the handshake on
	pending map[int64][]*request // by session; the first waits for the ensemble, the others for the first

	nextID                 int64 // of a session
	minSession, maxSession time.Duration
	received, sent         int64 // by connections that are closed
}

func newMember(st *State, index int) *Member {
	m := &Member{
		st:         st,
		index:      index,
		replica:    newReplica(znode.NewTree()),
		minSession: st.conf.MinSession,
		maxSession: st.conf.MaxSession,
	}
	// As ZooKeeper does: the server's number, the time, and room to count.
	m.nextID = int64(uint64(st.start.UnixMilli())<<24>>8) | int64(index+1)<<56
	m.reset()
	return m
}

// reset forgets what a server has only while it serves clients.
func (m *Member) reset() {
	m.lead, m.follow = nil, nil
	m.clients = make(map[int64]*Peer)
	m.pending = make(map[int64][]*request)
	m.since = time.Now()
}

func (m *Member) serving() bool { return m.lead != nil || m.follow != nil }

// role is what the server says it is in answer to the four-letter words.
func (m *Member) role() string {
	switch {
	case len(m.st.members) == 1:
		return "standalone"
	case m.lead != nil:
		return "leader"
	case m.follow != nil:
		return "follower"
	default:
		return "looking"
	}
}

// apply applies a committed transaction, and answers the request it was made for
// if this server's client waits for that.
func (m *Member) apply(t *txn) {
	stats := m.replica.apply(t)
	m.st.feed(t)
	for _, l := range m.st.laggardsAt(m) {
		m.st.advance(l)
	}
	switch t.op {
	case wire.OpConnect:
		if m.follow != nil { // each follower tells the leader of each new session, as in ZooKeeper
			m.follow.touched[t.session] = t.timeout
		}
	case wire.OpClose:
		m.forget(t)
	}
	if t.request != nil && t.request.at == m {
		m.complete(t.request, func() { t.answer(stats) })
	}
}

// forget drops a session that is over, and its connection. If the client has
// closed the session itself, the connection stays open for the answer.
func (m *Member) forget(t *txn) {
	if m.lead != nil {
		m.lead.tracker.remove(t.session)
	}
	if m.follow != nil {
		delete(m.follow.touched, t.session)
	}
	p := m.clients[t.session]
	if p != nil && (t.request == nil || t.request.from != p) {
		m.st.hangUp(p)
	}
}

// flush calls f once everything in the log is on disk.
func (m *Member) flush(f func()) {
	now := time.Now()
	if m.st.CommitDelay == 0 && !m.flushed.After(now) {
		f()
		return
	}
	if at := now.Add(m.st.CommitDelay); at.After(m.flushed) {
		m.flushed = at
	}
	m.later(m.flushed.Sub(now), &m.overdue.inputs, f)
}

// quit ends what the server does as leader or follower. It closes its
// connections to clients and to other servers.
func (m *Member) quit() {
	if f := m.follow; f != nil {
		f.send(message{kind: messageClosed})
	}
	if l := m.lead; l != nil {
		close(l.over)
		for _, f := range l.learners {
			l.send(f, message{kind: messageClosed})
		}
	}
	for _, p := range m.st.connections(m) {
		m.st.hangUp(p)
	}
	m.reset()
}

// lookForLeader is what a server does that has lost its leader, or its quorum.
func (m *Member) lookForLeader() {
	m.quit()
	m.st.canvass()
}

// Stop ends the server's process.
func (m *Member) Stop() {
	if m.Stopped {
		return
	}
	m.quit()
	m.Stopped, m.held, m.overdue = true, false, overdue{}
}

// Hold makes the server stand still until release.
func (m *Member) Hold() { m.held = !m.Stopped }

// SetSessionTimeouts sets the bounds of the session timeouts that later handshakes can negotiate.
func (m *Member) SetSessionTimeouts(shortest, longest time.Duration) {
	m.minSession, m.maxSession = shortest, longest
}

// Start starts the server's process again.
func (m *Member) Start() {
	if m.Stopped {
		m.Stopped, m.since = false, time.Now()
		m.st.canvass()
	}
}

// overdue is what a server that stands still has to do when it continues.
type overdue struct {
	expiry []func() // of the session tracker
	inputs []func() // frames and messages that came in, and what the disk has done
	silent []func() // checks whether another server was silent for too long
	pings  []func() // rounds of the pinging thread
}

// whenAwake calls f now or, if the server stands still, once it continues.
func (m *Member) whenAwake(f func()) {
	if m.held {
		m.overdue.inputs = append(m.overdue.inputs, f)
		return
	}
	f()
}

// later calls f after d. If the server stands still then, f is put on a list for
// when it continues.
func (m *Member) later(d time.Duration, list *[]func(), f func()) {
	m.st.after(d, func() {
		if m.held {
			*list = append(*list, f)
			return
		}
		f()
	})
}

// Release lets the server continue after a standstill. All threads of a real
// server wake at once, and nobody knows which of them get to run first. Here it
// is the order that does most harm: sessions expire before the touches that have
// come in, and pings are late.
func (m *Member) Release() {
	if !m.held {
		return
	}
	late := m.overdue
	m.held, m.overdue = false, overdue{}
	for _, f := range slices.Concat(late.expiry, late.inputs, late.silent) {
		f()
	}
	for _, f := range late.pings {
		m.later(m.st.PingLag, &m.overdue.pings, f)
	}
	m.st.announce()
	m.st.canvass()
}
