package zktest

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// A Server is a ZooKeeper server in this process, or with [Servers] an ensemble
// of several. It has the client protocol, with sessions, watches, ACLs, multi,
// container and TTL nodes, over TCP and over pipes that no network sees. Make one
// with [Start] or [New]. It keeps nothing on disk.
//
// It stands in for a real one because it is compared with it: the package's
// tests send both the same requests, scripted and random, and compare all that
// comes back. What it does not have: TLS, SASL, quotas, reconfiguration,
// read-only mode, observers, and limits on clients.
//
// It can be told to fail as a [Proxy] can, by methods of the same names. Those
// affect the clients of all its servers.
//
// Everything it does waits on channels and on package time alone, as long as
// nobody asks for its TCP address. So in a bubble of testing/synctest, in which
// it must then be made and closed, and with clients that use [Server.Dialer],
// an hour passes in no time.
//
// # Ensembles
//
// Servers are counted from 0; an index out of range panics, as with a slice. At
// the start, the last server leads. See [Server.Leader] and [Server.DialerTo].
//
// Each client is connected to one server. The server answers reads and pings from
// what it has applied, and forwards writes and syncs to the leader, which commits
// a write once a majority of the servers has logged it. The requests of one
// session are answered in order.
//
// Only the leader decides when a session is over. It counts from the last touch,
// and rounds up to a tick of its own. Any request of the leader's own clients
// touches the session at once. So does the handshake of any client. A client of a
// follower is otherwise touched only by the follower's answers to the leader's
// pings, twice a tick: each lists the sessions heard of since the last one. Writes
// and syncs that a follower forwards touch nothing.
//
// A follower that hears nothing from its leader for five ticks ([WithSyncLimit])
// disconnects its clients, and serves none until it has found a leader. So does
// a leader that has lost its majority; until it notices, it answers pings, reads
// and syncs of its own clients. A majority without a leader elects one, which
// takes 200ms ([WithElectionTime]). The new leader gives every session the whole
// timeout again that the session was created with.
//
// The servers can be cut off from each other ([Server.CutLink]), slow
// ([Server.DelayLink], [Server.SetCommitDelay]), stand still ([Server.HoldServer])
// and be stopped ([Server.StopServer]). In a bubble, the same schedule of such
// faults and of requests has the same outcome each time, provided that no two
// things are asked for at the same instant.
//
// An ensemble has no consensus algorithm of its own. One goroutine owns the state
// of all servers and decides who leads, by the rules that ZooKeeper's algorithm
// ensures. A server that joins a leader gets its state at once, whatever the delay
// of the link.
//
// All methods are safe for concurrent use. They panic if neither Start nor New has made
// the Server.
type Server struct {
	faults *Proxy // all clients come through it
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

// Start starts a server and closes it when the test ends. Options that make no
// sense, or an address that cannot be had, fail the test.
func Start(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// New is [Start] for programs: the caller must call [Server.Close]. It returns
// an error for options that make no sense and for an address, given by
// [WithListen], that cannot be had.
func New(opts ...Option) (*Server, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{faults: newProxy(), state: quorum.New(c.Config), doors: make([]door, c.Servers)}
	s.faults.dial = s.accept
	s.faults.endSession = func(ctx context.Context, session int64, _ []byte) error { return s.state.Expire(ctx, session) }
	s.faults.serveWord = s.serveWord
	s.faults.limit = c.maxPacket
	s.running.Go(s.state.Run)
	if c.listen != "" {
		if err := s.listenAll(c.listen); err != nil {
			_ = s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close closes all connections and ends all goroutines of the server before it
// returns. Sessions are not closed: their clients see a server that has gone.
// The error is that of closing the port; later calls do nothing and return the
// same.
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

// accept makes the server's end of a link.
func (s *Server) accept(ctx context.Context, client net.Addr) (upstream, error) {
	a := client.(arrivalAddr)
	var p *quorum.Peer
	err := s.state.Do(ctx, func(st *quorum.State) { p = st.Connect(a.server, a.host()) })
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, errRefused
	}
	return p, nil
}
