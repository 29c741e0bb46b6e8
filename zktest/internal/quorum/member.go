package quorum

import (
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A Member is one server. It leads, or it follows, or it looks for a leader and serves no clients.
//
// A server alone is a leader without followers, so requests are processed in the same steps for any number of servers.
type Member struct {
	st    *State
	index int

	// The state on disk, which survives Stop.
	*replica           // the transactions that it has applied
	log      []*txn    // accepted and not applied yet, oldest first
	epoch    int64     // of the last leader that it has accepted
	flushed  time.Time // when all of the log is on disk
	spoiled  error     // why the server cannot read the log; nil: it can

	lead    *leadership // nil: it does not lead
	follow  *following  // nil: it does not follow
	since   time.Time   // when it began to look for a leader, if it does neither
	Stopped bool
	held    bool    // by Hold
	overdue overdue // to do after Release

	clients map[int64]*Peer      // by session, from the first frame of the handshake on
	pending map[int64][]*request // by session; the first waits for the ensemble, and the others for the first

	nextID                 int64 // of the next session that it creates
	MinSession, MaxSession time.Duration
}

func newMember(st *State, index int) *Member {
	m := &Member{
		st:         st,
		index:      index,
		replica:    st.conf.newReplica(znode.NewTree()),
		MinSession: st.conf.MinSession,
		MaxSession: st.conf.MaxSession,
	}
	// As in ZooKeeper: the server's number, the time, and room for a counter.
	m.nextID = int64(uint64(st.start.UnixMilli())<<24>>8) | int64(index+1)<<56
	m.reset()
	return m
}

// reset drops the state that a server has only while it serves clients.
func (m *Member) reset() {
	m.lead, m.follow = nil, nil
	m.clients = make(map[int64]*Peer)
	m.pending = make(map[int64][]*request)
	m.since = time.Now()
}

func (m *Member) serving() bool { return m.lead != nil || m.follow != nil }

// role returns the role that the server's four-letter words report.
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

// apply applies a committed transaction. It answers the transaction's request if that came from a client
// of this server.
func (m *Member) apply(t *txn) {
	stats := m.replica.apply(t)
	switch t.op {
	case codec.OpConnect:
		if m.follow != nil { // as in ZooKeeper, each follower reports each new session to the leader
			m.follow.touched[t.session] = t.timeout
		}
	case codec.OpClose:
		m.forget(t)
	}
	if t.request != nil && t.request.at == m {
		m.complete(t.request, func() { t.answer(stats) })
	}
}

// forget drops a session that is over, and closes its connection. If the client has closed the session
// itself, the connection stays open for the answer.
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

// quit ends the server's role as leader or follower. It closes the connections to clients and to other servers.
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

// lookForLeader makes a server look for a leader after it has lost its leader or its quorum.
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

// Hold makes the server stand still until [Member.Release].
func (m *Member) Hold() { m.held = !m.Stopped }

// Start starts the server's process again. It stays stopped if it cannot read its log.
func (m *Member) Start() {
	if m.Stopped && m.spoiled == nil {
		m.Stopped, m.since = false, time.Now()
		m.st.canvass()
	}
}

// overdue holds what a server that stands still has to do when it continues.
type overdue struct {
	expiry []func() // of the session tracker
	inputs []func() // frames and messages that have arrived, and writes that have reached the disk
	silent []func() // checks whether another server was silent for too long
	pings  []func() // rounds of the pinging thread
}

// whenAwake calls f now or, if the server stands still, when it continues.
func (m *Member) whenAwake(f func()) {
	if m.held {
		m.overdue.inputs = append(m.overdue.inputs, f)
		return
	}
	f()
}

// later calls f after d. If the server stands still then, f goes on a list for when it continues.
func (m *Member) later(d time.Duration, list *[]func(), f func()) {
	m.st.after(d, func() {
		if m.held {
			*list = append(*list, f)
			return
		}
		f()
	})
}

// Release lets the server continue after a standstill. All threads of a real server wake at once, and
// their order is unknown. Here they run in the order that does the most harm: sessions expire before
// the touches that have arrived are processed, and pings are late.
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
	m.st.canvass()
}
