package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

var quiet = session.WithLogger(slog.New(slog.DiscardHandler))

// virtually connects in virtual time, and returns the session.
func virtually(t *testing.T, servers string, d dial, opts ...session.Option) (*session.Manager, *session.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := session.Connect(ctx, servers, append([]session.Option{quiet, session.WithDialer(d)}, opts...)...)
	must(t, err)
	t.Cleanup(func() { m.Close() })
	s, err := m.Session(ctx)
	must(t, err)
	return m, s
}

// halfDark is an ensemble in which the servers called dark answer no dial.
func halfDark(d dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "dark") {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return d(ctx, network, addr)
	}
}

// Sessions asked for a minute and were granted six seconds, and one of two servers is dark. All
// of them survive a reset of their connections.
func TestGrantedLessThanAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 60
		srv := zktest.Start(t, zktest.MinSessionTimeout(4*time.Second), zktest.MaxSessionTimeout(6*time.Second))
		var all []*session.Session
		for range sessions {
			_, s := virtually(t, "dark:1,light:1", halfDark(srv.Dialer()), session.WithTimeout(time.Minute))
			all = append(all, s)
		}
		time.Sleep(time.Minute + rand.N(time.Second))
		srv.Disconnect()
		time.Sleep(time.Minute)
		for _, s := range all {
			if s.Err() != nil {
				t.Error(s.Err())
			}
		}
	})
}

// When servers come back after a while, the sessions are connected again within a second. The
// longer the outage was, the less is left of the sessions.
func TestBackSoonAfterAnOutage(t *testing.T) {
	for _, outage := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const sessions = 60
			srv := zktest.Start(t)
			held := map[*session.Manager]*session.Session{}
			for range sessions {
				m, s := virtually(t, "a:1,b:1,c:1", srv.Dialer(), session.WithTimeout(10*time.Second))
				held[m] = s
			}
			time.Sleep(time.Minute + rand.N(time.Second))
			srv.Refuse(true)
			srv.Disconnect()
			time.Sleep(outage)
			srv.Heal()
			time.Sleep(time.Second)
			for m, s := range held {
				if s.Err() != nil || m.State() != session.Connected {
					t.Errorf("%v, %v a second after an outage of %v", m.State(), s.Err(), outage)
				}
			}
		})
	}
}

// oneAnswer is a connection through a proxy that closes it after one answer to a request.
type oneAnswer struct {
	net.Conn
	mu     sync.Mutex
	frames int
	left   int // bytes of the present frame
}

func (c *oneAnswer) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		if c.frames == 2 { // the greeting, and the answer
			c.Close()
			return 0, io.EOF
		}
		var size [4]byte
		if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
			return 0, err
		}
		c.frames++
		c.left = int(binary.BigEndian.Uint32(size[:]))
		return copy(b, size[:]), nil
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// A proxy that closes each connection after one answer is not dialled in a tight loop.
func TestOneAnswerIsOfNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.Delay(time.Millisecond)
		var dials atomic.Int64
		_, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			c, err := srv.Dialer()(ctx, network, addr)
			return &oneAnswer{Conn: c}, err
		})
		start := dials.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for ctx.Err() == nil {
			_ = s.Sync(ctx, "/")
		}
		if n := dials.Load() - start; n > 30 {
			t.Errorf("%d dials in 5 s", n)
		}
	})
}

// After a connection that was of use, the next dial is made at once.
func TestFirstRedialIsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m, _ := virtually(t, "h:1", srv.Dialer())
		for range 5 {
			time.Sleep(10 * time.Second)
			srv.ResetRequests()
			srv.Disconnect()
			synctest.Wait()
			if m.State() != session.Connected || srv.Count(zktest.Any(zktest.OpConnect)) != 1 {
				t.Fatal("no connection at once")
			}
		}
	})
}

// An ensemble whose answers take longer than a third of the session timeout can be reached with all defaults. Each round
// gives a server more time for its greeting, so that takes less than a timeout.
func TestSlowGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.Delay(2 * time.Second) // each way
		start := time.Now()
		virtually(t, "h:1", srv.Dialer())
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("connected after %v", took)
		}
	})
}

// noDeadlines is a connection without deadlines, as through an SSH channel.
type noDeadlines struct{ net.Conn }

var errNoDeadlines = errors.New("deadlines are not supported")

func (noDeadlines) SetDeadline(time.Time) error      { return errNoDeadlines }
func (noDeadlines) SetReadDeadline(time.Time) error  { return errNoDeadlines }
func (noDeadlines) SetWriteDeadline(time.Time) error { return errNoDeadlines }

func withoutDeadlines(d dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d(ctx, network, addr)
		return noDeadlines{c}, err
	}
}

// The connections of a dialer need no deadlines: not to connect, to work, or to close a lost
// session on the server.
func TestConnectionsWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m, s := virtually(t, "h:1", withoutDeadlines(srv.Dialer()), session.WithMargin(3*time.Second))
		_, err := makeNode(t.Context(), s, "/node", nil)
		must(t, err)
		srv.Disconnect()
		must(t, s.Sync(t.Context(), "/"))

		srv.Refuse(true)
		srv.Disconnect()
		<-s.Done()
		srv.ResetRequests()
		srv.Heal()
		time.Sleep(2 * time.Second) // the margin is longer than that
		if srv.Count(zktest.Any(zktest.OpClose)) == 0 {
			t.Error("the server was not asked to close the lost session")
		}
		must(t, m.Close())
	})
}
