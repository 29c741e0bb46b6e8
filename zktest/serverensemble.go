package zktest

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// Leader returns the index of the server that leads; of a server alone, 0. It
// returns false if no server leads at the moment. A leader that is cut off from
// the others counts until another one is elected, or until it gives up.
func (s *Server) Leader() (int, bool) {
	s.made()
	leader, ok := 0, false
	s.with(func(st *quorum.State) { leader, ok = st.Leader() })
	return leader, ok
}

// ServerOf returns the index of the server that a session is connected to: the
// one with its latest handshake. It returns false if the session is not
// connected.
func (s *Server) ServerOf(session int64) (int, bool) {
	s.made()
	server, ok := 0, false
	s.with(func(st *quorum.State) { server, ok = st.ServerOf(session) })
	return server, ok
}

// Expiry returns when the leader will expire a session if the session is not
// touched again. That is a tick of the leader's session tracker. It returns false
// if the leader has expired the session, even if that cannot be committed, and
// while no server leads.
func (s *Server) Expiry(session int64) (time.Time, bool) {
	s.made()
	var at time.Time
	ok := false
	s.with(func(st *quorum.State) { at, ok = st.Expiry(session) })
	return at, ok
}

// CutLink cuts the network from one server to another, in this direction, until
// [Server.HealLinks]. The receiver then gets what was sent meanwhile, and what was
// on its way, in order, as with TCP; unless it has given up the connection by then.
// CutLink does not affect clients.
func (s *Server) CutLink(from, to int) {
	s.made()
	s.pair(from, to)
	s.with(func(st *quorum.State) { st.CutLink(from, to) })
}

// HealLinks ends every [Server.CutLink]. Delays stay.
func (s *Server) HealLinks() {
	s.made()
	s.with((*quorum.State).HealLinks)
}

// DelayLink makes every message from one server to another arrive d after it was
// sent, including those on their way. 0 ends the delay.
func (s *Server) DelayLink(from, to int, d time.Duration) {
	s.made()
	s.pair(from, to)
	s.with(func(st *quorum.State) { st.DelayLink(from, to, d) })
}

// HoldServer makes a server stand still until [Server.ReleaseServer], as in a
// long garbage collection or after SIGSTOP: it takes nothing in and sends nothing.
// Its connections stay open, and new ones are accepted.
func (s *Server) HoldServer(i int) {
	s.made()
	s.member(i, (*quorum.Member).Hold)
}

// ReleaseServer lets a server continue after [Server.HoldServer]. Everything that
// is overdue happens at once: if the server leads, it expires sessions first;
// then it processes what has come in meanwhile, in order; then it notices which
// other servers were silent for too long. The overdue pings of a leader follow
// after the time that [Server.SetPingLag] sets.
func (s *Server) ReleaseServer(i int) { s.made().member(i, (*quorum.Member).Release) }

// SetPingLag sets how long after a standstill a leader sends its overdue pings.
// Until then it processes requests without having asked its followers which
// clients they have heard of. The default is 20ms.
func (s *Server) SetPingLag(d time.Duration) {
	s.made()
	s.with(func(st *quorum.State) { st.PingLag = d })
}

// StopServer stops a server. Its connections to clients and to other servers are
// closed, and new ones are refused. The server keeps what it has logged. If it is
// not running, StopServer does nothing.
func (s *Server) StopServer(i int) {
	s.made()
	s.member(i, (*quorum.Member).Stop)
	_ = s.shut(i)
}

// StartServer starts a server again, with what it had logged before
// [Server.StopServer]. The server serves clients once it has found a leader. It is
// an error if the TCP port that the server had is taken. If the server is running,
// StartServer does nothing.
func (s *Server) StartServer(i int) error {
	s.made()
	s.member(i, (*quorum.Member).Start)
	return s.reopen(i)
}

// SetCommitDelay sets how long each server takes to write a transaction to disk,
// which it does before it acknowledges the transaction. Several transactions can
// be written at the same time. The default is 0.
func (s *Server) SetCommitDelay(d time.Duration) {
	s.made()
	s.with(func(st *quorum.State) { st.CommitDelay = d })
}

// SetSessionTimeoutsOf is [WithSessionTimeouts] for one server, and for handshakes
// from now on. A session that moves to or from that server can be granted another
// timeout than it had.
func (s *Server) SetSessionTimeoutsOf(i int, shortest, longest time.Duration) {
	s.made()
	s.member(i, func(m *quorum.Member) { m.SetSessionTimeouts(shortest, longest) })
}

// SetEagerACL switches ZooKeeper's enableEagerACLCheck on or off. With it, the
// servers of an ensemble check permissions before they forward a create, create2,
// delete, setData or setACL. They refuse it at once with "no auth" or "invalid
// ACL", even ahead of earlier requests, and with transaction number 0. It makes no
// difference to a server alone. The default is off.
func (s *Server) SetEagerACL(on bool) {
	s.made()
	s.with(func(st *quorum.State) { st.EagerACL = on })
}

// Throttle makes the servers answer all matching requests with code -127,
// throttled, without asking the leader, until it is called with nil. Such answers
// keep their place among those of the session. Pings and requests to close a
// session are never throttled. The match must not call methods of the Server, and
// the Request that it gets has no Conn.
func (s *Server) Throttle(m Match) {
	s.made()
	var throttle func(frame []byte, session int64, at time.Time) bool
	if m != nil {
		throttle = func(frame []byte, session int64, at time.Time) bool {
			r := parseRequest(frame)
			r.Session, r.At = session, at
			return m(r)
		}
	}
	s.with(func(st *quorum.State) { st.Throttle = throttle })
}

// with has the run loop call f, unless the server is closed.
func (s *Server) with(f func(*quorum.State)) { _ = s.state.Do(context.Background(), f) }

// member has the run loop call f with server i.
func (s *Server) member(i int, f func(*quorum.Member)) {
	_ = s.doors[i] // a wrong index must panic here and not in the run loop
	s.with(func(st *quorum.State) { f(st.Member(i)) })
}

// pair panics if there are no such servers, here and not in the run loop.
func (s *Server) pair(from, to int) { _, _ = s.doors[from], s.doors[to] }
