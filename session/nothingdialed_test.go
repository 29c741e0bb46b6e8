package session_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A dialer that returns neither a connection nor an error has failed. The manager dials again, however often that happens,
// and Close returns.
//
// Broken rule: nothing that a program supplies stops the loop (section 7).
func TestDialerReturnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		dials := 0
		m, err := session.Open("h:1", quiet, session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials++; dials <= 20 {
				return nil, nil //nolint:nilnil // that is the test
			}
			return srv.Dialer()(ctx, network, addr)
		}))
		must(t, err)
		defer m.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err = m.Session(ctx)
		if err != nil {
			t.Errorf("no session after %d dials: %v", dials, err)
		}
	})
}

// wrapped has the NetConn that the test gives it.
type wrapped struct {
	net.Conn
	inner func(wrapped) net.Conn
}

func (c wrapped) NetConn() net.Conn { return c.inner(c) }

// A connection whose NetConn returns the connection itself, another wrapper without an end, or nil works as others do.
//
// Broken rule: nothing that a program supplies makes the client spin. (Outside of a bubble, in which spinning stops the clock.)
func TestNetConnWithoutEnd(t *testing.T) {
	for what, inner := range map[string]func(wrapped) net.Conn{
		"itself":    func(c wrapped) net.Conn { return c },
		"ever anew": func(c wrapped) net.Conn { return wrapped{c.Conn, c.inner} },
		"nothing":   func(wrapped) net.Conn { return nil },
	} {
		t.Run(what, func(t *testing.T) {
			var dials atomic.Int32
			m, err := session.Open(testserver.Server(t).ConnectString(), quiet,
				session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
					dials.Add(1)
					c, err := new(net.Dialer).DialContext(ctx, network, addr)
					return wrapped{c, inner}, err
				}))
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), testserver.Patience)
			defer cancel()
			if _, err := m.Session(ctx); err != nil {
				t.Errorf("%d dials: %v", dials.Load(), err)
			}
			closed := make(chan error, 1)
			go func() { closed <- m.Close() }()
			must(t, within(t, closed, "Close"))
		})
	}
}
