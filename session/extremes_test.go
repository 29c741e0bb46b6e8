package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Timeouts that no server grants do not become limits of a handshake: no answer comes within a millisecond, and a day is too
// long to wait for a stopped server.
func TestTimeoutsThatNoServerGrants(t *testing.T) {
	for _, asked := range []time.Duration{time.Millisecond, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			srv.Delay(3 * time.Millisecond)
			began := time.Now()
			m, err := session.Connect(t.Context(), "stopped:1,h:1", quiet, session.WithTimeout(asked), session.WithDialer(
				func(ctx context.Context, network, addr string) (net.Conn, error) {
					if addr != "stopped:1" {
						return srv.Dialer()(ctx, network, addr)
					}
					c, s := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, s) }()
					return c, nil
				}))
			must(t, err)
			if d := time.Since(began); d > time.Minute {
				t.Errorf("a session with a timeout of %v connects after %v", asked, d)
			}
			must(t, m.Close())
		})
	}
}

// Waits between dials are never a rounding error, whatever they are computed from.
func TestDialsThatAreRefusedRest(t *testing.T) {
	for _, opt := range []session.Option{session.WithTimeout(time.Millisecond), session.WithBackoff(1, time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			dials := 0
			m, err := session.Open("h:1", opt, quiet, session.WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
				if dials++; dials > 1000 {
					<-ctx.Done()
				}
				return nil, errors.New("refused")
			}))
			must(t, err)
			time.Sleep(10 * time.Second)
			must(t, m.Close())
			if dials > 1000 {
				t.Errorf("more than %d dials in 10 s", dials)
			}
		})
	}
}

// generous is a connection to a server that grants at least a minute.
type generous struct {
	net.Conn
	read int // bytes
}

func (g *generous) Read(b []byte) (int, error) {
	const from, to = 8, 12 // the timeout, behind the length and the version
	if g.read < to {
		b = b[:min(len(b), to-g.read)]
	}
	n, err := g.Conn.Read(b)
	granted := binary.BigEndian.AppendUint32(nil, uint32(time.Minute.Milliseconds()))
	for i := range n {
		if at := g.read + i; at >= from && at < to {
			b[i] = granted[at-from]
		}
	}
	g.read += n
	return n, err
}

// The lease counts by the shortest timeout that was granted. So heartbeats do too, if a later server grants more.
func TestLaterServerGrantsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dials := zktest.Start(t), 0
		_, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := srv.Dialer()(ctx, network, addr)
			if dials++; dials > 1 && err == nil {
				c = &generous{Conn: c}
			}
			return c, err
		}, session.WithTickTime(2*time.Second))
		enter(t, s, "/d/own")
		srv.Disconnect()
		time.Sleep(2 * time.Minute)
		must(t, s.Err())
	})
}

// stuckWith is a log handler that hangs where it takes attributes, as one does that has one mutex for all.
type stuckWith struct {
	slog.Handler
	release chan struct{}
}

func (h stuckWith) WithAttrs([]slog.Attr) slog.Handler {
	<-h.release
	return h
}

// A log handler that hangs in WithAttrs hangs neither a call for the session nor Close.
func TestLogHandlerHangsWithAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, release := zktest.Start(t), make(chan struct{})
		defer close(release)
		m, err := session.Open("h:1", session.WithDialer(srv.Dialer()), session.WithTimeout(time.Hour), // not granted: a line says so
			session.WithLogger(slog.New(stuckWith{slog.DiscardHandler, release})))
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := m.Session(ctx)
		must(t, err)
		must(t, s.Sync(ctx, "/"))
		wantClose(t, m)
	})
}
