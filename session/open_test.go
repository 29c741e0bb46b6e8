package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
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
		wantErr(t, "Session without a server", expect.Err(m.Session(short)), context.DeadlineExceeded)
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

// Bad input fails before any I/O, with an error that says what is wrong with it.
func TestOpenInvalid(t *testing.T) {
	dials := 0
	d := session.WithDialer(func(context.Context, string, string) (net.Conn, error) { dials++; return nil, errors.New("no") })
	for _, c := range []struct {
		servers string
		opt     session.Option
		want    string
	}{
		{"", quiet, "names no server"},
		{"zk:x", quiet, `port "x" is not a number`},
		{"h:2181/locks?timeout=5", quiet, `no parameters, since all settings are options: "h:2181/locks"`},
		{"a:1;b:2", quiet, `servers are separated by commas: "a:1,b:2"`},
		{"a:1/x,b:2/x", quiet, `the chroot is written once, behind the last server, and has no comma: "a:1,b:2/x"`},
		{"zk://a:1", quiet, `without a scheme: "a:1"`},
		{"a:65536", quiet, `port "65536" is not a number`},
		{"a:1/x/", quiet, "chroot"},
		{"a", nil, "nil option"},
		{"a", session.WithAuth("digest", []byte("secret")), "user:password, and this one has no colon"},
		{"a", session.WithAuth("", []byte("x")), "empty auth scheme"},
		{"a", session.WithACL(), "empty ACL"},
		{"a", session.WithACL(zk.WorldACL(zk.PermRead)...), "nobody could"},
		{"a", session.WithTimeout(0), "session timeout 0s is not between"},
		{"a", session.WithTickTime(-1), "tick -1ns is not between"},
		{"a", session.WithMargin(0), "margin 0s is not positive"},
		{"a", session.WithMargin(time.Minute), "margin 1m0s is not below the session timeout 10s"},
		{"a", session.WithBackoff(2, 1), "backoff from 2ns to 1ns"},
		{"a", session.WithNodeLimits(0, 1), "both must be positive"},
		{"a", session.WithTLS(nil), "nil TLS config"},
		{"a", session.WithDialer(nil), "nil dialer"},
		{"a", session.WithResolver(nil), "nil resolver"},
		{"a", session.WithLogger(nil), "nil logger"},
		{"a", session.WithSASL(nil), "nil SASL mechanism"},
	} {
		m, err := session.Open(c.servers, d, c.opt)
		if m != nil || !errors.Is(err, session.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%q, want %q: %v", c.servers, c.want, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%v has the credential", err)
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
				waiting := expect.Go(func() error { return expect.Err(m.Session(t.Context())) })
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
