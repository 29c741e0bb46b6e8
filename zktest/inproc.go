package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

var errServerClosed = errors.New("zktest: server is closed")

// A Server is a ZooKeeper server in this process: the client protocol, with
// sessions, watches, ACLs, multi, container and TTL nodes, over TCP and over
// pipes that no network sees. Make one with [Start] or [New]. It keeps nothing
// on disk.
//
// It stands in for a real one because it is compared with it: the package's
// tests send both the same requests, scripted and random, and compare all that
// comes back. What it does not have: TLS, SASL, quotas, reconfiguration,
// read-only mode, limits on clients, and other servers, apart from the lagging
// follower that [Server.Lag] makes.
//
// It can be told to fail as a [Proxy] can, by methods of the same names.
//
// Everything it does waits on channels and on package time alone, as long as
// nobody asks for its TCP address. So in a bubble of testing/synctest, in which
// it must then be made and closed, and with clients that use [Server.Dialer],
// an hour passes in no time.
//
// All methods are safe for concurrent use.
type Server struct {
	faults *Proxy // all clients come through it
	state  *state
	addr   string // guarded by faults.mu; "": not listening yet

	running  sync.WaitGroup
	closing  sync.Once
	closeErr error
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
	s := &Server{faults: newProxy(), state: newState(c)}
	s.faults.dial = s.accept
	s.faults.endSession = s.expire
	s.faults.serveWord = s.serveWord
	s.faults.limit = c.maxPacket
	s.running.Go(s.state.run)
	if c.listen != "" {
		if _, err := s.listen(c.listen); err != nil {
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
	s.closing.Do(func() {
		s.closeErr = s.faults.Close()
		close(s.state.done)
		s.running.Wait()
	})
	return s.closeErr
}

// Dialer returns a function that connects to the server through a pipe, whatever
// the address: it fits session.WithDialer and zk.WithDialer's wrappers. The
// server sees such clients as coming from 127.0.0.1. The function fails once the
// server is closed, or if ctx has ended; while [Server.Refuse] is on, the
// connection it returns is a closed one, as from a proxy.
func (s *Server) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		select {
		case <-s.faults.done:
			return nil, fmt.Errorf("dial %s %s: %w", network, addr, errServerClosed)
		default:
		}
		client, server := net.Pipe()
		s.faults.serve(server)
		return client, nil
	}
}

// Addr returns the address, host:port, for TCP clients. The first call makes the
// server listen, unless [WithListen] has. It panics if no port of 127.0.0.1 can
// be had, or if the server was closed before it ever listened.
func (s *Server) Addr() string {
	addr, err := s.listen("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return addr
}

// ConnectString is [Server.Addr], by the name it has with an [Ensemble].
func (s *Server) ConnectString() string { return s.Addr() }

// listen returns the address of the listener, after making one if need be.
func (s *Server) listen(addr string) (string, error) {
	p := s.faults
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.addr != "" {
		return s.addr, nil
	}
	select {
	case <-p.done:
		return "", errServerClosed
	default:
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("zktest: %w", err)
	}
	p.listener, s.addr = listener, listener.Addr().String()
	p.running.Go(func() { p.accept(listener) })
	return s.addr, nil
}

// accept makes the server's end of a link.
func (s *Server) accept(ctx context.Context, client net.Addr) (upstream, error) {
	var p *peer
	err := s.do(ctx, func(st *state) {
		st.ordinals++
		p = newPeer(st, st.ordinals, client)
		st.peers[p] = struct{}{}
	})
	return p, err
}

// do has the run loop call f, and waits until it has.
func (s *Server) do(ctx context.Context, f func(*state)) error {
	done := make(chan struct{})
	command := func() {
		defer close(done)
		f(s.state)
	}
	select {
	case s.state.commands <- command:
		<-done
		return nil
	case <-s.state.done:
		return errServerClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
