package quorum

import (
	"math/bits"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// leadership is the state of a server while it leads. A leader that is cut off from the other servers
// keeps this state for a while, and cannot commit anything.
type leadership struct {
	m       *Member
	zxid    int64 // of the latest proposal
	tracker *tracker
	over    chan struct{} // closed when the server stops leading

	outstanding []*proposal              // proposed and not committed, oldest first
	ahead       map[string]*znode.Record // the nodes as the outstanding proposals will leave them; nil: deleted

	learners []*learner // in the order in which they joined
	ticks    int        // rounds of pings so far, divided by two
	half     bool       // the last round was in the middle of a tick
}

// A proposal is a transaction that the leader has appended to its log.
type proposal struct {
	txn       *txn
	acks      uint64     // one bit for each server that has logged it
	syncs     []*learner // their syncs are answered once it is committed
	committed bool
	after     func() // called once it is committed; may be nil
}

// then calls f once the proposal is committed.
func (p *proposal) then(f func()) {
	if p.committed {
		f()
		return
	}
	p.after = f
}

// beginLeading makes the server the leader of an epoch. From now on its whole log counts as committed.
// Every session gets the full timeout again with which it was created.
func (m *Member) beginLeading(epoch int64) {
	for len(m.log) > 0 {
		t := m.log[0]
		m.log = m.log[1:]
		m.apply(t)
	}
	m.epoch = epoch
	m.tree.Zxid = max(m.tree.Zxid, epoch<<32)
	l := &leadership{
		m:       m,
		zxid:    m.tree.Zxid,
		tracker: newTracker(&m.st.conf, m.st.start, m.index),
		over:    make(chan struct{}),
		ahead:   make(map[string]*znode.Record),
	}
	m.lead = l
	for id, timeout := range m.tree.Sessions {
		l.tracker.add(id, timeout)
	}
	l.track()
	l.scheduleRound()
	l.scheduleReap()
}

// process handles a request that a follower has forwarded. A sync waits for the outstanding proposals,
// and does not ask a quorum.
func (l *leadership) process(r *request, f *learner) {
	r.via = f.conn
	if r.op != codec.OpSync {
		l.prepare(r)
		return
	}
	if n := len(l.outstanding); n > 0 {
		last := l.outstanding[n-1]
		last.syncs = append(last.syncs, f)
		return
	}
	l.send(f, message{kind: messageSync})
}

// propose appends a transaction to the log and sends it to the followers.
func (l *leadership) propose(t *txn) *proposal {
	l.zxid++
	t.zxid, t.time = l.zxid, time.Now().UnixMilli()
	p := &proposal{txn: t}
	if err := l.m.st.conf.unreadable(t); err != nil {
		l.m.spoil(err)
	}
	l.outstanding = append(l.outstanding, p)
	l.m.log = append(l.m.log, t)
	for _, f := range l.learners {
		l.send(f, message{kind: messageProposal, txn: t})
	}
	l.m.flush(func() {
		if l.m.lead == l {
			l.ack(t.zxid, l.m)
		}
	})
	return p
}

// ack notes that a server has logged a transaction. Then it commits, in order, the proposals that a quorum has logged.
func (l *leadership) ack(zxid int64, by *Member) {
	for _, p := range l.outstanding {
		if p.txn.zxid == zxid {
			p.acks |= 1 << by.index
			break
		}
	}
	for len(l.outstanding) > 0 && bits.OnesCount64(l.outstanding[0].acks) >= l.m.st.quorum() {
		p := l.outstanding[0]
		l.outstanding = l.outstanding[1:]
		if len(l.outstanding) == 0 {
			clear(l.ahead) // the tree is about to have all of it
		}
		l.commit(p)
	}
}

func (l *leadership) commit(p *proposal) {
	l.m.log = l.m.log[1:]
	for _, f := range l.learners {
		l.send(f, message{kind: messageCommit, zxid: p.txn.zxid})
	}
	l.m.apply(p.txn)
	for _, f := range p.syncs {
		l.send(f, message{kind: messageSync})
	}
	if p.committed = true; p.after != nil {
		p.after()
	}
}
