package quorum

import (
	"slices"
	"time"
)

// There is no consensus algorithm here: one goroutine sees all servers and decides which one leads, by
// the rule that an algorithm would enforce. A leader needs a majority, itself included, in which no
// server has logged more than the leader. A majority has logged each committed transaction, and any two
// majorities have a server in common. So the leader has all committed transactions.

// canvass lets servers without a leader find one, after the time that an election takes.
func (st *State) canvass() { st.after(st.conf.Election, st.settle) }

// settle finds a leader for each server that looks for one, if it can.
func (st *State) settle() {
	for st.join() || st.elect(st.looking()) {
	}
}

// join lets servers that look for a leader join the present one. It reports whether any server has joined.
func (st *State) join() bool {
	joined := false
	for _, m := range st.looking() {
		if l := st.leaderFor(m); l != nil {
			l.admit(m)
			joined = true
		}
	}
	return joined
}

// looking returns the servers that have looked for a leader for as long as an election takes.
func (st *State) looking() []*Member {
	return slices.DeleteFunc(slices.Clone(st.members), func(m *Member) bool {
		return m.Stopped || m.spoiled != nil || m.held || m.serving() || time.Since(m.since) < st.conf.Election
	})
}

// leaderFor returns the leader that the server can join, or nil. The server must reach the leader, and
// a quorum of servers that follow it.
func (st *State) leaderFor(m *Member) *leadership {
	l := st.authority()
	if l == nil || l.m.held || l.m.spoiled != nil || l.m.epoch < m.epoch || !st.connected(l.m, m) {
		return nil
	}
	votes := 0
	for _, other := range st.members {
		if !other.held && st.connected(other, m) && (other.lead == l || other.follows(l)) {
			votes++
		}
	}
	if votes < st.quorum() {
		return nil
	}
	return l
}

// elect makes one of the candidates the leader, if a majority can follow it. It prefers the most recent log, and then
// the highest index. It reports whether there is a new leader.
func (st *State) elect(candidates []*Member) bool {
	var leader *Member
	var electorate []*Member
	for _, m := range candidates {
		supporters := st.supporters(m, candidates)
		if len(supporters) < st.quorum() {
			continue
		}
		if leader == nil || m.logged() >= leader.logged() {
			leader, electorate = m, supporters
		}
	}
	if leader == nil {
		return false
	}
	leader.beginLeading(st.nextEpoch(electorate))
	for _, m := range electorate {
		if m != leader {
			leader.lead.admit(m)
		}
	}
	return true
}

// supporters returns m and the other candidates that can follow it.
func (st *State) supporters(m *Member, candidates []*Member) []*Member {
	return slices.DeleteFunc(slices.Clone(candidates), func(other *Member) bool {
		return other != m && (!st.connected(m, other) || m.logged() < other.logged())
	})
}

// nextEpoch returns an epoch above all that these servers have seen. An epoch is the upper half of the
// numbers of its transactions. A server alone has no epochs.
func (st *State) nextEpoch(electorate []*Member) int64 {
	if len(st.members) == 1 {
		return 0
	}
	return latestEpoch(electorate) + 1
}

// latestEpoch returns the epoch of the latest election that these servers know of.
func latestEpoch(of []*Member) (epoch int64) {
	for _, m := range of {
		epoch = max(epoch, m.epoch)
	}
	return epoch
}

// logged returns the last transaction in the server's log. Its number has the epoch in its upper half.
func (m *Member) logged() int64 {
	if n := len(m.log); n > 0 {
		return m.log[n-1].zxid
	}
	return m.tree.Zxid
}
