package session_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

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

// When servers come back after a while, the sessions are connected again within a second. The
// longer the outage was, the less is left of the sessions. After a connection that was of use, the next dial is made at once.
func TestBackSoonAfterAnOutage(t *testing.T) {
	for _, outage := range []time.Duration{0, time.Second, 3 * time.Second, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const sessions = 60
			srv := zktest.Start(t)
			held := map[*session.Manager]*session.Session{}
			for range sessions {
				m, s := virtually(t, "a:1,b:1,c:1", srv.Dialer(), session.WithTimeout(10*time.Second))
				held[m] = s
			}
			time.Sleep(time.Minute + rand.N(time.Second))
			srv.Refuse(outage > 0)
			srv.Disconnect()
			if outage > 0 {
				time.Sleep(outage)
				srv.Heal()
				time.Sleep(time.Second)
			}
			synctest.Wait()
			for m, s := range held {
				if s.Err() != nil || m.State() != session.Connected {
					t.Errorf("%v, %v a second after an outage of %v", m.State(), s.Err(), outage)
				}
			}
		})
	}
}

// A server that closes each connection after the greeting, or after one answer, is not dialled in a tight loop.
func TestOneAnswerIsOfNoUse(t *testing.T) {
	for frames, opts := range map[int][]session.Option{1: nil, 2: nil, 3: {session.WithAuth("digest", []byte("us:secret"))}} {
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int64
			closes := answering(func(_, n int, f []byte) ([]byte, bool) {
				switch {
				case n == 0:
					dials.Add(1)
					return greet(0x77), frames > 1
				case codec.Op(f) == codec.OpAuth:
					return result(f, 0), true
				}
				return result(f, codec.CodeNoNode), n+1 < frames
			})
			m, err := session.Open("h:1", append(opts, quiet, session.WithTickTime(time.Second), session.WithDialer(closes))...)
			must(t, err)
			defer m.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			for ctx.Err() == nil {
				if s, err := m.Session(ctx); err == nil {
					_ = s.Sync(ctx, "/")
				}
				time.Sleep(time.Millisecond)
			}
			if n := dials.Load(); n > 40 || n == 0 {
				t.Errorf("%d frames: %d dials in 5 s", frames, n)
			}
		})
	}
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
		must(t, expect.Err(makeNode(t.Context(), s, "/node", nil)))
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

// halfMute is an ensemble in which the servers called mute accept connections, read what comes, and say nothing but a greeting,
// which may be nil.
func halfMute(d dial, greeting []byte) dial {
	mute := answering(func(_, n int, _ []byte) ([]byte, bool) {
		if n == 0 {
			return greeting, true
		}
		return nil, true
	})
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "mute") {
			return mute(ctx, network, addr)
		}
		return d(ctx, network, addr)
	}
}

// One of three servers accepts connections, and greets nobody or does not answer the identity. A manager that comes there first goes on to another server
// long before a session timeout is over.
//
// Broken rule: section 7, Dialing: such a server is given a quarter of the lease, and then half.
func TestConnectPassesSilentServer(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second} {
		slow := 0
		for i := range 40 { // the order of the hosts is random
			var greeting []byte
			if i%2 > 0 { // the server does not answer the identity
				greeting = words(36, 0, int32(timeout.Milliseconds()), 0, 0x77, 16, 1, 2, 3, 4)
			}
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.MaxSessionTimeout(time.Minute))
				began := time.Now()
				virtually(t, "mute:1,light:1,light:2", halfMute(srv.Dialer(), greeting), session.WithTimeout(timeout),
					session.WithAuth("digest", []byte("us:secret")))
				if took := time.Since(began); took > timeout || greeting == nil && took > timeout/3 {
					slow++
				}
			})
		}
		if slow > 0 {
			t.Errorf("timeout %v: %d of 40 managers waited too long for the silent server", timeout, slow)
		}
	}
}

// A session whose connection breaks, and which comes to the silent server, is not lost, and is connected again before
// half of its lease is over.
//
// Broken rule: the same; section 6.2, "To be connected again matters more".
func TestReconnectPassesSilentServer(t *testing.T) {
	const timeout = 10 * time.Second
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			_, s := virtually(t, "mute:1,light:1,light:2", halfMute(srv.Dialer(), nil), session.WithTimeout(timeout))
			enter(t, s, "/own")
			srv.Disconnect()
			began := time.Now()
			must(t, s.Sync(t.Context(), "/"))
			if d := time.Since(began); d > timeout*2/5 {
				t.Errorf("connected again after %v", d)
			}
			must(t, s.Err())
		})
	}
}
