package zktest

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// Leader returns the index of the server that leads, which is 0 for a server alone. It returns false if no server leads
// at the moment. A leader that is cut off from the others counts until another one is elected, or until it gives up.
func (s *Server) Leader() (int, bool) {
	s.made()
	leader, ok := 0, false
	s.with(func(st *quorum.State) { leader, ok = st.Leader() })
	return leader, ok
}

// CutLink cuts the network from one server to another, in this direction, until [Server.HealLinks].
// As with TCP, the receiver then gets all messages sent before and during the cut, in order, unless
// it has given up the connection by then. CutLink does not affect clients.
func (s *Server) CutLink(from, to int) {
	s.made()
	s.pair(from, to)
	s.with(func(st *quorum.State) { st.CutLink(from, to) })
}

// HealLinks ends every [Server.CutLink].
func (s *Server) HealLinks() {
	s.made()
	s.with((*quorum.State).HealLinks)
}

// HoldServer makes a server stand still until [Server.ReleaseServer], as in a long garbage collection or after SIGSTOP.
// It processes nothing and sends nothing. Its connections stay open, and new ones are accepted.
func (s *Server) HoldServer(i int) {
	s.made()
	s.member(i, (*quorum.Member).Hold)
}

// ReleaseServer lets a server continue after [Server.HoldServer]. Everything that is overdue happens at once, in this
// order: a leader expires sessions; the server processes the requests and messages that have arrived; it notices which
// other servers were silent for too long. A leader sends its overdue pings 20 ms later.
func (s *Server) ReleaseServer(i int) { s.made().member(i, (*quorum.Member).Release) }

// StopServer stops a server. It closes the server's connections to clients and to other servers, and new ones are
// refused. The server keeps its log. StopServer does nothing if the server is not running.
func (s *Server) StopServer(i int) {
	s.made()
	s.member(i, (*quorum.Member).Stop)
	_ = s.shut(i)
}

// StartServer starts a server again after [Server.StopServer], with the log that it had. The server serves clients once
// it has found a leader. It is an error if the TCP port that the server had is taken, or if the server cannot read its
// log (see [MaxPacket]). StartServer does nothing if the server is running.
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

// failure returns an error if server i is past help: its log has the end of a session that is too long for it to read.
func (s *Server) failure(i int) error {
	var failed error
	s.member(i, func(m *quorum.Member) { failed = m.Failure() })
	return failed
}

// failures returns the failures of all servers.
func (s *Server) failures() error {
	var all []error
	for i := range s.doors {
		all = append(all, s.failure(i))
	}
	return errors.Join(all...)
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
