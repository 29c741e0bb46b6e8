package quorum

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// A laggard is the replica of a session that [Server.Lag] has slowed down. It
// stays behind the server that the session is connected to.
type laggard struct {
	*replica
	session int64
	lag     int    // how many transactions it stays behind
	behind  []*txn // committed and not applied, oldest first
}

// SetLag sets how many transactions a session's replica stays behind.
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

// newLaggard makes a replica like that of the session's server.
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
	l := &laggard{replica: newReplica(m.tree.Clone()), session: session, behind: behind}
	st.laggards[session] = l
	if p != nil {
		p.moveTo(l.replica)
	}
	return l, nil
}

// lagBehind has a client that has just connected go on with its session's laggard.
func (p *Peer) lagBehind(l *laggard) {
	if l.tree.Zxid > p.at.tree.Zxid {
		// Only a deposed leader lets a session in that is ahead of it. That is late enough.
		delete(p.st.laggards, p.session)
		return
	}
	p.view = l.replica
	p.st.advance(l)
	l.catchUp(p.seen)
}

// feed tells the laggards of a committed transaction.
func (st *State) feed(t *txn) {
	if t.zxid <= st.fed {
		return // another server has applied it before
	}
	st.fed = t.zxid
	st.remember(t)
	if t.op == wire.OpClose {
		delete(st.laggards, t.session)
	}
	for _, l := range st.laggards {
		l.behind = append(l.behind, t)
	}
}

// remember keeps a committed transaction until all servers of the leader's epoch
// have applied it. They need not have it in their logs before that, since a quorum
// commits without them.
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

// unapplied returns the committed transactions that the server has not applied
// yet. It returns false if the server has lost its ensemble: it will never apply
// them, but get the state of a leader.
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

// slow returns all laggards, in an order that is always the same.
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

// laggardsAt returns those that are connected to a server.
func (st *State) laggardsAt(m *Member) []*laggard {
	return slices.DeleteFunc(st.slow(), func(l *laggard) bool {
		p := m.clients[l.session]
		return p == nil || p.view != l.replica
	})
}

// advance applies transactions until the laggard is as far behind as it may be.
func (st *State) advance(l *laggard) {
	for len(l.behind) > l.lag && l.behind[0].zxid <= st.reach(l) {
		l.step()
	}
}

// advanceAll has the laggards apply what is older than a real follower's lag can
// be: its ensemble would have dropped it.
func (st *State) advanceAll() {
	old := time.Now().Add(-st.patience()).UnixMilli()
	for _, l := range st.slow() {
		for len(l.behind) > 0 && l.behind[0].time <= old && l.behind[0].zxid <= st.reach(l) {
			l.step()
		}
	}
}

// reach returns the latest transaction that the laggard may apply: the latest
// one that the session's server has applied. The laggard of a session that is not
// connected stands still.
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

// catchUp applies everything up to a transaction.
func (l *laggard) catchUp(zxid int64) {
	for len(l.behind) > 0 && l.behind[0].zxid <= zxid {
		l.step()
	}
}

// catchUp brings what the client sees up to a transaction that its server has
// applied.
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
