package zktest

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// state is all that an in-process server knows. It belongs to the goroutine in
// run: everybody else sends it frames and functions.
type state struct {
	conf     config
	inbox    chan input
	commands chan func()
	done     chan struct{} // closed by Server.Close

	start    time.Time
	zxid     int64 // of the latest transaction
	main     *member
	sessions map[int64]*clientSession
	nextID   int64
	peers    map[*peer]struct{}
	ordinals int64

	received, sent int64 // by connections that are gone
}

// clientSession is one ZooKeeper session.
type clientSession struct {
	id       int64
	password []byte
	timeout  time.Duration
	expires  time.Duration // since the start, a multiple of the tick
	peer     *peer         // nil: disconnected
	own      *member       // nil: it does not lag
}

func newState(conf config) *state {
	st := &state{
		conf:     conf,
		inbox:    make(chan input),
		commands: make(chan func()),
		done:     make(chan struct{}),
		start:    time.Now(),
		main:     newMember(newTree()),
		sessions: make(map[int64]*clientSession),
		peers:    make(map[*peer]struct{}),
	}
	// As ZooKeeper does: the server's number, the time, and room to count.
	st.nextID = int64(uint64(st.start.UnixMilli())<<24>>8 | 1<<56)
	return st
}

func (st *state) run() {
	ticks := time.NewTicker(st.conf.tick)
	defer ticks.Stop()
	reaps := time.NewTicker(st.conf.containerCheck)
	defer reaps.Stop()
	for {
		select {
		case in := <-st.inbox:
			st.handle(in)
		case command := <-st.commands:
			command()
		case <-ticks.C:
			st.tick()
		case <-reaps.C:
			st.reap()
		case <-st.done:
			return
		}
	}
}

func (st *state) handle(in input) {
	p := in.from
	switch {
	case p.gone:
	case in.frame == nil:
		st.hangUp(p)
	case p.session == nil:
		st.connect(p, in.frame)
	default:
		st.request(p, in.frame)
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
	if p.member != nil {
		p.member.drop(p)
	}
	if p.session != nil && p.session.peer == p {
		p.session.peer = nil
	}
	delete(st.peers, p)
	st.received += p.received
	st.sent += p.sent
}

// commit gives changes that were found possible the next number, and makes them.
func (st *state) commit(changes []change) []nodeStat {
	st.zxid++
	t := txn{zxid: st.zxid, time: time.Now().UnixMilli(), changes: changes}
	stats := st.main.apply(t)
	for _, m := range st.lagging() {
		m.learn(t)
	}
	return stats
}

// lagging returns the members other than main, in an order that is always the
// same.
func (st *state) lagging() []*member {
	var all []*member
	for _, id := range st.sessionIDs() {
		if m := st.sessions[id].own; m != nil {
			all = append(all, m)
		}
	}
	return all
}

func (st *state) sessionIDs() []int64 { return slices.Sorted(maps.Keys(st.sessions)) }

// tick ends the sessions whose time is over. A follower that is long behind is
// dropped from a real ensemble; here it catches up.
func (st *state) tick() {
	const syncLimit = 5 // ticks
	now := time.Now()
	for _, id := range st.sessionIDs() {
		if st.sessions[id].expires <= now.Sub(st.start) {
			st.endSession(id)
		}
	}
	for _, m := range st.lagging() {
		m.catchUpTime(now.Add(-syncLimit * st.conf.tick))
	}
}

// touch puts a session's end off. The end is on a tick, so that a session
// lives for at least its timeout and at most one tick more.
func (st *state) touch(s *clientSession) {
	ticks := (time.Since(st.start) + s.timeout) / st.conf.tick
	s.expires = (ticks + 1) * st.conf.tick
}

// endSession deletes a session's nodes in one transaction, and closes its
// connection. It returns false if there is no such session.
func (st *state) endSession(id int64) bool {
	s, ok := st.sessions[id]
	if !ok {
		return false
	}
	delete(st.sessions, id)
	var changes []change
	for _, path := range st.main.tree.owned(id) {
		changes = append(changes, change{op: OpDelete, path: path})
	}
	st.commit(changes)
	if s.peer != nil {
		st.hangUp(s.peer)
	}
	return true
}

// newSession makes one, which is a transaction.
func (st *state) newSession() *clientSession {
	s := &clientSession{id: st.nextID}
	st.nextID++
	seed := binary.BigEndian.AppendUint64([]byte("turnstile"), uint64(s.id))
	sum := sha256.Sum256(seed)
	s.password = sum[:16]
	st.sessions[s.id] = s
	st.commit(nil)
	return s
}

// reap deletes the containers that have become empty and the nodes whose time
// to live is over, each in its own transaction.
func (st *state) reap() int {
	t := st.main.tree
	reaped := 0
	for _, path := range slices.Sorted(maps.Keys(t.reapable)) {
		n := t.nodes[path]
		over := n.stat.cversion > 0 // a container that never had a child stays
		if n.stat.hasTTL() {
			over = time.Now().UnixMilli()-n.stat.mtime > n.stat.owner&ttlMax
		}
		if over && len(n.children) == 0 {
			st.commit([]change{{op: OpDelete, path: path}})
			reaped++
		}
	}
	return reaped
}
