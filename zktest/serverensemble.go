package zktest

import (
	"context"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// Leader returns the index of the server that leads, which is 0 for a server alone. It returns false
// if no server leads at the moment. A leader that is cut off from the others counts until another
// one is elected, or until it gives up.
func (s *Server) Leader() (int, bool) {
	s.made()
	leader, ok := 0, false
	s.with(func(st *quorum.State) { leader, ok = st.Leader() })
	return leader, ok
}

// ServerOf returns the index of the server that a session is connected to. If it is connected to
// several, the one with the latest handshake counts. It returns false if the session is not
// connected.
func (s *Server) ServerOf(session int64) (int, bool) {
	s.made()
	server, ok := 0, false
	s.with(func(st *quorum.State) { server, ok = st.ServerOf(session) })
	return server, ok
}

// Expiry returns when the leader will expire a session that is not touched again. That is a tick of
// the leader's session tracker. It returns false if the leader has expired the session, even if it
// cannot commit that, and if no server leads.
func (s *Server) Expiry(session int64) (time.Time, bool) {
	s.made()
	var at time.Time
	ok := false
	s.with(func(st *quorum.State) { at, ok = st.Expiry(session) })
	return at, ok
}

// CutLink cuts the network from one server to another, in this direction, until [Server.HealLinks].
// As with TCP, the receiver then gets all messages sent before and during the cut, in order, unless
// it has given up the connection by then. CutLink does not affect clients.
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

// DelayLink makes every message from one server to another arrive d after it was sent, including
// messages on their way. A delay of 0 ends it.
func (s *Server) DelayLink(from, to int, d time.Duration) {
	s.made()
	s.pair(from, to)
	s.with(func(st *quorum.State) { st.DelayLink(from, to, d) })
}

// HoldServer makes a server stand still until [Server.ReleaseServer], as in a long garbage collection
// or after SIGSTOP. It processes nothing and sends nothing. Its connections stay open, and new ones
// are accepted.
func (s *Server) HoldServer(i int) {
	s.made()
	s.member(i, (*quorum.Member).Hold)
}

// ReleaseServer lets a server continue after [Server.HoldServer]. Everything that is overdue happens
// at once, in this order: a leader expires sessions; the server processes the requests and messages
// that have arrived; it notices which other servers were silent for too long. A leader sends its
// overdue pings a while later: see [Server.SetPingLag].
func (s *Server) ReleaseServer(i int) { s.made().member(i, (*quorum.Member).Release) }

// SetPingLag sets how long after a standstill a leader sends its overdue pings. Until then it
// processes requests although it does not know which clients its followers have heard of. The
// default is 20ms.
func (s *Server) SetPingLag(d time.Duration) {
	s.made()
	s.with(func(st *quorum.State) { st.PingLag = d })
}

// StopServer stops a server. It closes the server's connections to clients and to other servers, and
// new ones are refused. The server keeps its log. StopServer does nothing if the server is not
// running.
func (s *Server) StopServer(i int) {
	s.made()
	s.member(i, (*quorum.Member).Stop)
	_ = s.shut(i)
}

// StartServer starts a server again after [Server.StopServer], with the log that it had. The server
// serves clients once it has found a leader. It is an error if the TCP port that the server had is
// taken, or if the server cannot read its log ([Server.Failure]). StartServer does nothing if the server is
// running.
func (s *Server) StartServer(i int) error {
	s.made()
	var failed error
	s.member(i, func(m *quorum.Member) {
		if m.Start(); m.Stopped {
			failed = m.Failure()
		}
	})
	if failed != nil {
		return failed
	}
	return s.reopen(i)
}

// Failure returns an error if server i is past help: its log has the end of a session that is too long for it to read
// ([ExtraPacket]). It returns nil if all is well, and after Close.
func (s *Server) Failure(i int) error {
	s.made()
	var failed error
	s.member(i, func(m *quorum.Member) { failed = m.Failure() })
	return failed
}

// failures returns the failures of all servers.
func (s *Server) failures() error {
	var all []error
	for i := range s.doors {
		all = append(all, s.Failure(i))
	}
	return errors.Join(all...)
}

// SetCommitDelay sets how long each server takes to write a transaction to disk. A server
// acknowledges a transaction after it has written it. Several transactions can be written at the
// same time. The default is 0.
func (s *Server) SetCommitDelay(d time.Duration) {
	s.made()
	s.with(func(st *quorum.State) { st.CommitDelay = d })
}

// SetSessionTimeoutsOf sets [MinSessionTimeout] and [MaxSessionTimeout] for later handshakes with one
// server. A session that moves to or from that server can be granted another timeout than before.
func (s *Server) SetSessionTimeoutsOf(i int, shortest, longest time.Duration) {
	s.made()
	s.member(i, func(m *quorum.Member) { m.SetSessionTimeouts(shortest, longest) })
}

// Throttle makes the servers answer matching requests with code -127, throttled, without asking the
// leader, until Throttle is called with nil. These answers keep their place among the answers of the
// session. Pings and requests to close a session are never throttled. The match must not call
// methods of the Server. The Request that it gets has no Conn.
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
	_ = s.doors[i] // a wrong index must panic here, not in the run loop
	s.with(func(st *quorum.State) { f(st.Member(i)) })
}

// pair panics if there are no such servers. It must happen here, not in the run loop.
func (s *Server) pair(from, to int) { _, _ = s.doors[from], s.doors[to] }
