package quorum

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// A laggard is the replica of one session. It stays a number of transactions behind the server that the
// session is connected to.
type laggard struct {
	*replica
	session int64
	lag     int    // how many transactions it stays behind
	behind  []*txn // committed and not applied, oldest first
}

// SetLag gives a session a replica of its own, and sets how many transactions it stays behind.
func (st *State) SetLag(session int64, transactions int) error {
	l, ok := st.laggards[session]
	if !ok {
		var err error
		if l, err = st.newLaggard(session); err != nil {
			return err
		}
	}
	l.lag = transactions
	st.advance(l)
	return nil
}

// newLaggard makes a copy of the replica of the session's server.
func (st *State) newLaggard(session int64) (*laggard, error) {
	m, p := st.spokesman(), st.peerOf(session)
	if p != nil {
		m = p.at
	}
	if _, ok := m.tree.Sessions[session]; !ok {
		return nil, fmt.Errorf("zktest: no session %#x", session)
	}
	behind, ok := m.unapplied()
	if !ok {
		return nil, fmt.Errorf("zktest: session %#x is connected to a server that has lost its ensemble", session)
	}
	l := &laggard{replica: st.conf.newReplica(m.tree.Clone()), session: session, behind: behind}
	st.laggards[session] = l
	if p != nil {
		p.moveTo(l.replica)
	}
	return l, nil
}

// lagBehind makes a client that has just connected use its session's laggard.
func (p *Peer) lagBehind(l *laggard) {
	if l.tree.Zxid > p.at.tree.Zxid {
		// Only a deposed leader accepts a session that is ahead of it. Its own state is late
		// enough.
		delete(p.st.laggards, p.session)
		return
	}
	p.view = l.replica
	p.st.advance(l)
	l.catchUp(p.seen)
}

// feed hands a committed transaction to the laggards.
func (st *State) feed(t *txn) {
	if t.zxid <= st.fed {
		return // another server has applied it before
	}
	st.fed = t.zxid
	st.remember(t)
	if t.op == codec.OpClose {
		delete(st.laggards, t.session)
	}
	for _, l := range st.laggards {
		l.behind = append(l.behind, t)
	}
}

// remember keeps a committed transaction until all servers of the leader's epoch have applied it. Until
// then a server may not even have it in its log, because a quorum commits without the others.
func (st *State) remember(t *txn) {
	applied, epoch := t.zxid, st.Epoch()
	for _, m := range st.members {
		if m.serving() && m.epoch == epoch {
			applied = min(applied, m.tree.Zxid)
		}
	}
	st.recent = append(st.recent, t)
	i := 0
	for i < len(st.recent) && st.recent[i].zxid <= applied {
		i++
	}
	st.recent = slices.Delete(st.recent, 0, i)
}

// unapplied returns the committed transactions that the server has not applied yet. It returns false if
// the server has lost its ensemble: it will never apply them, but get a leader's state.
func (m *Member) unapplied() ([]*txn, bool) {
	if m.epoch != m.st.Epoch() {
		return nil, false
	}
	var all []*txn
	for _, t := range m.st.recent {
		if t.zxid > m.tree.Zxid {
			all = append(all, t)
		}
	}
	return all, true
}

// slow returns all laggards, in the order of their sessions' ids.
func (st *State) slow() []*laggard {
	if len(st.laggards) == 0 {
		return nil
	}
	var all []*laggard
	for _, id := range slices.Sorted(maps.Keys(st.laggards)) {
		all = append(all, st.laggards[id])
	}
	return all
}

// laggardsAt returns the laggards whose sessions are connected to a server.
func (st *State) laggardsAt(m *Member) []*laggard {
	return slices.DeleteFunc(st.slow(), func(l *laggard) bool {
		p := m.clients[l.session]
		return p == nil || p.view != l.replica
	})
}

// advance applies transactions until the laggard is no further behind than its lag.
func (st *State) advance(l *laggard) {
	for len(l.behind) > l.lag && l.behind[0].zxid <= st.reach(l) {
		l.step()
	}
}

// advanceAll applies the transactions that no real follower can lag behind: its ensemble would have
// dropped it.
func (st *State) advanceAll() {
	old := time.Now().Add(-st.patience()).UnixMilli()
	for _, l := range st.slow() {
		for len(l.behind) > 0 && l.behind[0].time <= old && l.behind[0].zxid <= st.reach(l) {
			l.step()
		}
	}
}

// reach returns the latest transaction that the laggard may apply, which is the latest one that the
// session's server has applied. The laggard of a session that is not connected applies nothing.
func (st *State) reach(l *laggard) int64 {
	if p := st.peerOf(l.session); p != nil {
		return p.at.tree.Zxid
	}
	return 0
}

// step applies the next transaction.
func (l *laggard) step() {
	t := l.behind[0]
	l.behind = l.behind[1:]
	l.apply(t)
}

// catchUp applies all transactions up to zxid.
func (l *laggard) catchUp(zxid int64) {
	for len(l.behind) > 0 && l.behind[0].zxid <= zxid {
		l.step()
	}
}

// catchUp brings the client's view up to a transaction that its server has applied.
func (p *Peer) catchUp(zxid int64) {
	if l := p.st.laggards[p.session]; l != nil && p.view == l.replica {
		l.catchUp(zxid)
	}
}

// moveTo moves a client and its watches to another replica in the same state.
func (p *Peer) moveTo(to *replica) {
	from := p.view
	move := func(a, b *watchTable) {
		for path := range a.byPeer[p] {
			b.add(path, p, a.byPath[path][p])
		}
		a.drop(p)
	}
	move(from.data, to.data)
	move(from.children, to.children)
	p.view = to
}
