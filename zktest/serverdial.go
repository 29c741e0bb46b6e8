package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

var errRefused = errors.New("connection refused")

// A door is where one server accepts TCP clients.
type door struct {
	addr     string       // "" until it is asked for
	listener net.Listener // nil: closed
}

// Dialer returns a function that connects to the server through an in-memory pipe, for use with session.WithDialer. The
// server sees such clients as coming from 127.0.0.1. The function fails if the server is closed or stopped, or if ctx
// has ended. While [Server.Refuse] is on, it returns a connection that is closed already, as clients of a proxy see it.
//
// A server alone is reached at any address. In an ensemble, the addresses of [Server.Hosts] and of
// [Server.ConnectString] reach one server each. Any other address reaches the next server in turn.
func (s *Server) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	s.made()
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return s.dial(ctx, network, addr, s.serverAt(addr))
	}
}

// DialerTo is like [Server.Dialer], but the function connects to server i at any address.
func (s *Server) DialerTo(i int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	s.made()
	_ = s.doors[i]
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return s.dial(ctx, network, addr, i)
	}
}

// Hosts returns a connect string for use with [Server.Dialer], such as
// "zk0:2181,zk1:2181,zk2:2181". Only the dialer resolves these names.
func (s *Server) Hosts() string {
	s.made()
	names := make([]string, len(s.doors))
	for i := range names {
		names[i] = fmt.Sprintf("zk%d:2181", i)
	}
	return strings.Join(names, ",")
}

// serverAt returns the server that an address leads to.
func (s *Server) serverAt(addr string) int {
	p := s.faults
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range s.doors {
		if addr != "" && s.doors[i].addr == addr {
			return i
		}
	}
	host, _, _ := strings.Cut(addr, ":")
	if name, ok := strings.CutPrefix(host, "zk"); ok {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(s.doors) {
			return i
		}
	}
	i := s.turn
	s.turn = (s.turn + 1) % len(s.doors)
	return i
}

func (s *Server) dial(ctx context.Context, network, addr string, i int) (net.Conn, error) {
	misuse.Context(ctx, "zktest: Server.Dialer")
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	stopped := false
	err := s.state.Do(ctx, func(st *quorum.State) { stopped = st.Member(i).Stopped })
	if stopped {
		err = errRefused
	}
	if err != nil {
		return nil, fmt.Errorf("dial %s %s: %w", network, addr, err)
	}
	client, server := net.Pipe()
	s.faults.serve(server, i)
	return client, nil
}

// Addr returns the address for TCP clients, host:port. In an ensemble that is the address of server 0. It never
// changes, and connections to it are refused while the server is stopped. The first call makes the server listen on a
// free port of 127.0.0.1. It panics if the server cannot, or was closed before it ever listened.
func (s *Server) Addr() string { return s.made().serverAddr(0) }

// serverAddr is [Server.Addr] for server i.
func (s *Server) serverAddr(i int) string {
	p := s.faults
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &s.doors[i]
	if d.addr == "" {
		if err := s.open(i, "127.0.0.1:0"); err != nil {
			panic(err)
		}
	}
	return d.addr
}

// ConnectString returns the addresses of all servers for TCP clients, separated by commas. See [Server.Addr].
func (s *Server) ConnectString() string {
	s.made()
	addrs := make([]string, len(s.doors))
	for i := range addrs {
		addrs[i] = s.serverAddr(i)
	}
	return strings.Join(addrs, ",")
}

// open makes a server listen. The caller holds the lock.
func (s *Server) open(i int, addr string) error {
	if s.closed {
		return quorum.ErrClosed
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("zktest: %w", err)
	}
	s.doors[i] = door{listener.Addr().String(), listener}
	s.running.Go(func() { acceptAll(listener, func(conn net.Conn) { s.faults.serve(conn, i) }) })
	return nil
}

// shut closes a server's listener.
func (s *Server) shut(i int) error {
	p := s.faults
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.doors[i].close()
}

// reopen makes a server listen again at its address, if it has one.
func (s *Server) reopen(i int) error {
	p := s.faults
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := s.doors[i]; d.addr != "" && d.listener == nil {
		return s.open(i, d.addr)
	}
	return nil
}

func (d *door) close() error {
	if d.listener == nil {
		return nil
	}
	listener := d.listener
	d.listener = nil
	return listener.Close()
}

// closeDoors closes all listeners for good.
func (s *Server) closeDoors() error {
	p := s.faults
	p.mu.Lock()
	defer p.mu.Unlock()
	s.closed = true
	var errs []error
	for i := range s.doors {
		errs = append(errs, s.doors[i].close())
	}
	return errors.Join(errs...)
}
