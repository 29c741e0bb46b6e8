package session_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// refusing is a dialer that reaches no server until the channel is closed.
func refusing(until <-chan struct{}, then dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-until:
			return then(ctx, network, addr)
		default:
			return nil, syscall.ECONNREFUSED
		}
	}
}

// Open returns at once, although there is no server. The manager gets its session when there is one.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := make(chan struct{})
		start := time.Now()
		m, err := session.Open("zk:2181", quiet, session.WithDialer(refusing(there, zktest.Start(t).Dialer())))
		must(t, err)
		defer m.Close()
		if m.State() != session.Connecting || time.Since(start) != 0 {
			t.Errorf("state %v after %v", m.State(), time.Since(start))
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = m.Session(short)
		wantErr(t, "Session without a server", err, context.DeadlineExceeded)
		waiting := make(chan *session.Session)
		go func() {
			s, err := m.Session(t.Context())
			if err != nil {
				t.Error(err)
			}
			waiting <- s
		}()
		synctest.Wait()
		close(there)
		s := <-waiting
		must(t, s.Sync(t.Context(), "/"))
		if m.State() != session.Connected {
			t.Errorf("state %v", m.State())
		}
	})
}

// Bad input fails at once, and nothing is dialled.
func TestOpenInvalid(t *testing.T) {
	dials := 0
	d := session.WithDialer(func(context.Context, string, string) (net.Conn, error) { dials++; return nil, errors.New("no") })
	for servers, opt := range map[string]session.Option{
		"":        session.WithTimeout(time.Second),
		"zk:x":    session.WithTimeout(time.Second),
		"zk:2181": session.WithTimeout(-1),
		"zk":      nil,
	} {
		m, err := session.Open(servers, quiet, d, opt)
		wantErr(t, servers, err, session.ErrInvalid)
		if m != nil {
			t.Error("a manager beside the error")
		}
	}
	if dials > 0 {
		t.Errorf("%d dials", dials)
	}
}

// A manager that never had a connection closes within a second, whatever its dials are waiting for,
// and leaves nothing running.
func TestCloseWithoutAConnection(t *testing.T) {
	for name, d := range map[string]dial{
		"refused": refusing(nil, nil),
		"dark":    halfDark(nil),
		"silent": func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return near, nil
		},
	} {
		for _, after := range []time.Duration{0, time.Millisecond, time.Second, 10 * time.Minute} {
			synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
				m, err := session.Open("dark:2181", quiet, session.WithDialer(d))
				must(t, err)
				time.Sleep(after)
				waiting := make(chan error)
				go func() { _, err := m.Session(t.Context()); waiting <- err }()
				synctest.Wait()
				start := time.Now()
				must(t, m.Close())
				if took := time.Since(start); took > 0 {
					t.Errorf("%s: closed after %v, when it had been open for %v", name, took, after)
				}
				wantErr(t, "Session", <-waiting, session.ErrClosed)
				if m.State() != session.Closed {
					t.Errorf("state %v", m.State())
				}
			})
		}
	}
}

// A manager goes on although the servers refuse its identity, and Session says so.
func TestOpenRefused(t *testing.T) {
	m, err := session.Open(testserver.Server(t).ConnectString(), quiet, session.WithAuth("no-such-scheme", []byte("x")))
	must(t, err)
	defer m.Close()
	for range 2 {
		_, err = m.Session(patient(t))
		wantErr(t, "Session", err, zk.ErrAuthFailed)
		if m.State() != session.Connecting {
			t.Errorf("state %v", m.State())
		}
	}
}
