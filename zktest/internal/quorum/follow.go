package quorum

import (
	"maps"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// following is the state of a server while it follows a leader.
type following struct {
	m       *Member
	conn    *quorumConn
	heard   time.Time               // when the last message from the leader arrived
	touched map[int64]time.Duration // the sessions heard of since the last ping, with their timeouts
	syncs   []*request              // forwarded to the leader, oldest first
	joining map[int64]*Peer         // clients whose session waits for the leader's revalidation
}

// follows reports whether the server believes that it follows this leader.
func (m *Member) follows(l *leadership) bool {
	return m.follow != nil && m.follow.conn.leader == l.m && m.epoch == l.m.epoch
}

// beginFollowing makes the server a follower, with the leader's state and log.
func (m *Member) beginFollowing(b *quorumConn, epoch int64, t *znode.Tree, log []*txn) {
	m.epoch = epoch
	m.replica = m.st.conf.newReplica(t)
	m.log = log
	m.follow = &following{
		m:       m,
		conn:    b,
		heard:   time.Now(),
		touched: make(map[int64]time.Duration),
		joining: make(map[int64]*Peer),
	}
	m.follow.listen()
	for _, t := range log {
		m.follow.ack(t)
	}
}

// listen makes the server leave a leader that has been silent for too long.
func (f *following) listen() {
	m := f.m
	left := time.Until(f.heard.Add(m.st.patience()))
	m.later(left, &m.overdue.silent, func() {
		switch {
		case m.follow != f:
		case time.Since(f.heard) >= m.st.patience():
			m.lookForLeader()
		default:
			f.listen()
		}
	})
}

func (f *following) send(m message) { f.m.st.send(f.conn, f.m, f.conn.leader, m) }

// ack acknowledges a transaction once it is on disk.
func (f *following) ack(t *txn) {
	f.m.flush(func() {
		if f.m.follow == f {
			f.send(message{kind: messageAck, zxid: t.zxid})
		}
	})
}

// take processes a message from the leader.
func (f *following) take(msg message) {
	f.heard = time.Now()
	m := f.m
	switch msg.kind {
	case messageProposal:
		if m.st.conf.unreadable(msg.txn) != nil {
			m.lookForLeader()
			return
		}
		m.log = append(m.log, msg.txn)
		f.ack(msg.txn)
	case messageCommit:
		t := m.log[0]
		m.log = m.log[1:]
		m.apply(t)
	case messagePing:
		f.send(message{kind: messagePing, touches: f.takeTouches()})
	case messageSync:
		r := f.syncs[0]
		f.syncs = f.syncs[1:]
		m.complete(r, func() { r.from.synced(r) })
	case messageRevalidate:
		if p := f.joining[msg.session]; p != nil {
			delete(f.joining, msg.session)
			p.joined(msg.valid)
		}
	case messageClosed:
		m.lookForLeader()
	}
}

// takeTouches returns the sessions heard of since its last call, sorted.
func (f *following) takeTouches() []touch {
	all := make([]touch, 0, len(f.touched))
	for _, id := range slices.Sorted(maps.Keys(f.touched)) {
		all = append(all, touch{id, f.touched[id]})
	}
	clear(f.touched)
	return all
}

// forward sends a client's request to the leader, which does not touch the session there.
func (f *following) forward(r *request) {
	if r.op == codec.OpSync {
		f.syncs = append(f.syncs, r)
	}
	f.send(message{kind: messageRequest, request: r})
}

// revalidate asks the leader whether the client's session may continue on this server.
func (f *following) revalidate(p *Peer) {
	f.joining[p.session] = p
	f.send(message{kind: messageRevalidate, touch: touch{p.session, p.timeout}})
}
