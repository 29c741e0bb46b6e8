package quorum

import (
	"slices"
	"time"
)

// A learner is the leader's end of the connection to a follower.
type learner struct {
	conn     *quorumConn
	heard    time.Time // when the last message from the follower arrived
	deadline int       // the last tick at which the follower counts for the quorum
}

// learner returns the leader's end of a connection, or nil if it is closed.
func (l *leadership) learner(b *quorumConn) *learner {
	for _, f := range l.learners {
		if f.conn == b {
			return f
		}
	}
	return nil
}

// admit makes a server a follower. The server gets the committed state and the outstanding proposals at
// once, and acknowledges these like any others.
func (l *leadership) admit(m *Member) {
	for _, old := range l.learners {
		if old.conn.follower == m { // the message that closes it is still on its way
			l.drop(old)
			break
		}
	}
	f := &learner{conn: &quorumConn{leader: l.m, follower: m}, heard: time.Now(), deadline: l.deadline()}
	var log []*txn
	for _, p := range l.outstanding {
		log = append(log, p.txn)
	}
	l.learners = append(l.learners, f)
	l.listen(f)
	m.beginFollowing(f.conn, l.m.epoch, l.m.tree.Clone(), log)
}

// deadline returns the last tick at which a follower counts for the quorum if a message from it has just arrived.
func (l *leadership) deadline() int { return l.ticks + l.m.st.conf.SyncLimit }

// listen drops a follower that has been silent for too long.
func (l *leadership) listen(f *learner) {
	m := l.m
	left := time.Until(f.heard.Add(m.st.patience()))
	m.later(left, &m.overdue.silent, func() {
		switch {
		case m.lead != l || l.learner(f.conn) == nil:
		case time.Since(f.heard) >= m.st.patience():
			l.drop(f)
		default:
			l.listen(f)
		}
	})
}

// drop closes the connection to a follower.
func (l *leadership) drop(f *learner) {
	l.remove(f)
	l.send(f, message{kind: messageClosed})
}

func (l *leadership) remove(f *learner) {
	l.learners = slices.DeleteFunc(slices.Clone(l.learners), func(other *learner) bool { return other == f })
}

func (l *leadership) send(f *learner, m message) { l.m.st.send(f.conn, l.m, f.conn.follower, m) }

// take processes a message from a follower.
func (l *leadership) take(f *learner, m message) {
	f.heard, f.deadline = time.Now(), l.deadline()
	switch m.kind {
	case messageAck:
		l.ack(m.zxid, f.conn.follower)
	case messagePing:
		for _, t := range m.touches {
			l.tracker.touch(t.session, t.timeout)
		}
	case messageRequest:
		l.process(m.request, f)
	case messageRevalidate:
		m.valid = l.revalidate(m.touch, f.conn)
		l.send(f, m)
	case messageClosed:
		l.remove(f)
	}
}

// revalidate lets a session continue with another connection, and touches the session. It returns false
// if the session is over.
func (l *leadership) revalidate(t touch, via *quorumConn) bool {
	if !l.tracker.touch(t.session, t.timeout) {
		return false
	}
	l.tracker.own(t.session, via)
	return true
}
