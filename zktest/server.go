package zktest

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// A Server is a ZooKeeper server in this process, or an ensemble of several with the option [Servers]. Make one with
// [Start] or [New]. It speaks the client protocol over TCP and over in-memory pipes, with sessions, watches, ACLs,
// multi, container nodes and TTL nodes. It does not have TLS, SASL other than DIGEST-MD5 ([SASLUser]), quotas,
// reconfiguration, read-only mode, observers, or limits on the number of clients. It keeps nothing on disk.
//
// A Server can fail in the ways that a [Proxy] can, with methods of the same names. They affect
// the clients of all servers of an ensemble.
//
// In a bubble of testing/synctest an hour passes in no time. The Server must be made and closed in
// the bubble, its clients must connect with [Server.Dialer], and nothing may ask for its TCP
// address: a Server without one waits on channels and timers alone.
//
// # Ensembles
//
// Servers are counted from 0. An index out of range panics, as with a slice. At the start, the
// last server leads. See [Server.Leader] and [Server.DialerTo].
//
// Each client is connected to one server. The server answers reads and pings by itself, from the transactions that it
// has applied. It forwards writes and syncs to the leader. The leader commits a write once a majority of the servers
// has logged it. The requests of one session are answered in order.
//
// Only the leader decides when a session is over. The timeout counts from the last time that the session was touched,
// rounded up to the next tick of the leader's session tracker. The handshake of any client touches its session, and so
// does any request of the leader's own clients. The session of a follower's client is otherwise touched only when the
// follower answers a ping of the leader, twice a tick: the answer lists the sessions that the follower has heard of
// since its last answer. A write or sync that a follower forwards touches nothing.
//
// A follower that hears nothing from its leader for five ticks disconnects its clients, and accepts none until it has
// found a leader. A leader that has lost its majority does the same. Until it notices, it answers pings, reads and
// syncs of its own clients. A majority without a leader elects one, which takes 200ms. The new leader gives every
// session the full timeout again with which it was created.
//
// Servers can be cut off from each other ([Server.CutLink]), stand still ([Server.HoldServer]) and be stopped
// ([Server.StopServer]). In a bubble, the same schedule of faults and requests has the same outcome
// each time, provided that no two of them happen at the same instant.
//
// An ensemble does not run a consensus algorithm. One goroutine owns the state of all servers and
// decides which one leads, by the rules that ZooKeeper's algorithm enforces. A server that joins a
// leader gets the leader's state at once, even over a slow link.
//
// All methods are safe for concurrent use. They panic if the Server was not made by Start or New.
type Server struct {
	faults *Proxy // all clients connect through it
	state  *quorum.State
	doors  []door // one for each server; guarded by faults.mu
	turn   int    // the server for the next client that does not name one; guarded by faults.mu
	closed bool   // guarded by faults.mu

	closing  sync.Once
	running  sync.WaitGroup
	closeErr error
}

// made returns s. It panics if s is nil or a zero value.
func (s *Server) made() *Server {
	if s == nil || s.faults == nil {
		panic("zktest: Server not made by Start or New")
	}
	return s
}

// Start starts a server, and closes it when the test ends. The test fails if an option is not
// valid. It also fails, at its end, if a server's log has
// what ZooKeeper could not read again ([MaxPacket]). With New it does not.
func Start(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		failed := s.failures()
		_ = s.Close()
		if failed != nil {
			tb.Fatalf("%v", failed)
		}
	})
	return s
}

// New is [Start] for programs. The caller must call [Server.Close]. New returns an error if an
// option is not valid.
func New(opts ...Option) (*Server, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{faults: newProxy(), state: quorum.New(c.complete()), doors: make([]door, c.servers)}
	s.faults.dial = s.accept
	s.faults.end = func(ctx context.Context, session int64, _ []byte) error { return s.state.Expire(ctx, session) }
	s.faults.dump = func(context.Context) (string, error) { return s.Word("dump") }
	s.faults.word = s.serveWord
	s.faults.limit = c.maxPacket
	s.running.Go(s.state.Run)
	return s, nil
}

// Close closes all connections, and returns once all goroutines of the server have ended. It does
// not close sessions: their clients see a server that has gone. The error is that of closing the
// listeners. Later calls do nothing and return the same error.
func (s *Server) Close() error {
	s.made()
	s.closing.Do(func() {
		err := s.closeDoors()
		s.closeErr = errors.Join(err, s.faults.Close())
		s.state.Close()
		s.running.Wait()
	})
	return s.closeErr
}

// accept makes the server's end of a client's connection.
func (s *Server) accept(ctx context.Context, l *link) (upstream, error) {
	host := "127.0.0.1" // a pipe's client is in this process
	if tcp, ok := l.client.RemoteAddr().(*net.TCPAddr); ok {
		host = tcp.IP.String()
	}
	var p *quorum.Peer
	err := s.state.Do(ctx, func(st *quorum.State) { p = st.Connect(l.at, host) })
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, errRefused
	}
	return p, nil
}
