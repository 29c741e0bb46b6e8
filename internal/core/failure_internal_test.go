package core

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/loglines"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// The texts of the reasons for which this side cuts a connection.
func TestCutTexts(t *testing.T) {
	for _, c := range []struct {
		step logbook.Step
		err  error
		want string
	}{
		{logbook.StepHandshake, os.ErrDeadlineExceeded, "no answer"},
		{logbook.StepConnected, errSilence(2345678 * time.Microsecond), "no answer for 2.346s, so this side cut the connection"},
		{logbook.StepConnected, errLongAnswer(2345678 * time.Microsecond), "one answer has taken 2.346s, so this side cut the connection to save the session"},
	} {
		f := &logbook.Failure{Step: c.step, To: logbook.Target{Addr: "zk1:2181", Host: "zk1"}, Err: c.err}
		if got, want := f.Error(), string(c.step)+" zk1:2181: "+c.want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// answering is a dialer to a server that does something with each connection.
func answering(serve func(net.Conn)) dialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go serve(far)
		return near, nil
	}
}

// afterHello reads the handshake of a client and answers it.
func afterHello(answer []byte, then func(net.Conn)) dialFunc {
	return answering(func(c net.Conn) {
		defer c.Close()
		if _, err := codec.ReadFrame(c, 100); err == nil {
			_, _ = c.Write(answer)
			then(c)
		}
	})
}

func refuse(context.Context, string, string) (net.Conn, error) { return nil, connRefused() }

func hangUp(c net.Conn) { c.Close() }
func keep(c net.Conn)   { _, _ = io.Copy(io.Discard, c); c.Close() }

// forged is a certificate, of nobody's authority, with a name that is meant to look like a line of
// the log.
func forged(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"evil\nlevel=ERROR msg=\"all locks lost\""},
		NotAfter:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), // and valid in the year of synctest
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Each reason for having no session is in the log within seconds, with the server's name, and in
// the errors of the calls that wait.
func TestWhyThereIsNoSession(t *testing.T) {
	greeting := append([]byte{0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 39, 16, 0, 0, 0, 0, 0, 0, 0, 0x77, 0, 0, 0, 16}, make([]byte, 16)...)
	refusal := []byte{0, 0, 0, 16, 255, 255, 255, 252, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 141}
	evil := forged(t)
	for name, c := range map[string]struct {
		dial   dialFunc
		lookup func(ctx context.Context, host string) ([]string, error)
		opts   []Option
		want   string
		wraps  error
	}{
		"refused": {
			dial: refuse,
			want: "dial zk1:2181: connection refused", wraps: syscall.ECONNREFUSED,
		},
		"no answer to the dial": {
			dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
			want: "dial zk1:2181: no answer",
		},
		"name unknown": {
			dial: refuse,
			lookup: func(_ context.Context, host string) ([]string, error) {
				return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.2:53", IsNotFound: true}
			},
			want: "lookup zk1: no such host",
		},
		"resolver hangs": {
			dial:   refuse,
			lookup: func(ctx context.Context, _ string) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() },
			want:   "lookup zk1: no answer",
		},
		"the address is named": {
			dial:   refuse,
			lookup: func(context.Context, string) ([]string, error) { return []string{"10.0.0.1"}, nil },
			want:   "dial zk1:2181 (10.0.0.1:2181): connection refused",
		},
		"hung up at once": {
			dial: answering(hangUp),
			want: "handshake with zk1:2181: the server hung up: it is not serving", wraps: io.EOF,
		},
		"hung up on the handshake": {
			dial: afterHello(nil, hangUp),
			want: "handshake with zk1:2181: the server hung up: it is not serving", wraps: io.EOF,
		},
		"no greeting": {
			dial: answering(keep),
			want: "handshake with zk1:2181: no answer",
		},
		"not ZooKeeper": {
			dial: afterHello([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), keep),
			want: "connection to zk1:2181: malformed frame from the server", wraps: codec.ErrBadFrame,
		},
		"identity refused": {
			dial: afterHello(append(greeting, refusal...), keep),
			opts: []Option{WithAuth("kerberos", []byte("secret"))},
			want: "identify to zk1:2181: the server refuses the identity of scheme \\\"kerberos\\\": zk: client authentication failed", wraps: zk.ErrAuthFailed,
		},
		"certificate": {
			dial: answering(func(c net.Conn) {
				server := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{evil}})
				_ = server.Handshake()
				c.Close()
			}),
			opts: []Option{WithTLS(&tls.Config{RootCAs: x509.NewCertPool()})},
			want: "TLS handshake with zk1:2181: tls: failed to verify certificate: x509: certificate is valid for evil\uFFFDlevel=ERROR",
		},
		"no TLS there": {
			dial: answering(hangUp),
			opts: []Option{WithTLS(&tls.Config{RootCAs: x509.NewCertPool()})},
			want: "TLS handshake with zk1:2181: the server hung up; is this its port for TLS?",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts := c.opts
			if c.lookup != nil {
				opts = append(opts, func(cfg *Config) { cfg.lookup = c.lookup })
			}
			m, r := managed(t, "zk1:2181", c.dial, opts...)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := m.Session(ctx)
			<-ctx.Done()
			lines := r.All()
			if got := r.With(c.want); len(got) == 0 || got[0].Level != slog.LevelWarn {
				t.Errorf("%s: want %q in the log", name, c.want)
				r.Show(t, time.Now())
			}
			if n := len(lines); n > 3 {
				t.Errorf("%s: %d lines in five seconds", name, n)
			}
			if err == nil || !errors.Is(err, zk.ErrAuthFailed) && !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), strings.ReplaceAll(c.want, `\"`, `"`)) && c.wraps != zk.ErrAuthFailed {
				t.Errorf("%s: Session returned %v", name, err)
			}
			rest := time.Hour
			if name != "refused" {
				rest = longtest.Pick(5*time.Minute, rest)
			}
			time.Sleep(rest)
			if n := len(r.All()); n >= 30 {
				t.Errorf("%s: %d lines in %v", name, n, rest)
			}
			for _, l := range r.All() {
				if strings.Contains(l.Text, "\n") || strings.Contains(l.Text, "secret") {
					t.Errorf("%s: %s", name, l.Text)
				}
			}
		})
	}
}

// The texts of the errors of Connect and Manager.Session.
func TestErrorTextsWithoutASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := []Option{
			WithLogger(slog.New(loglines.New())),
			WithDialer(refuse),
			func(cfg *Config) {
				cfg.lookup = func(context.Context, string) ([]string, error) { return []string{"10.0.0.1"}, nil }
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := connect(ctx, "zk1:2181/app", opts...)
		if want := `session: connect to "zk1:2181/app": context deadline exceeded: dial zk1:2181 (10.0.0.1:2181): connection refused`; err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v does not match", err)
		}
		m, err := open("zk1:2181/app", opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.Session(ctx)
		if want := `context deadline exceeded: dial zk1:2181 (10.0.0.1:2181): connection refused`; err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// rough is a dialer whose connections can be made to fail in any way.
type rough struct {
	dial dialFunc
	fail chan error // each value ends the present connection
}

type roughConn struct {
	net.Conn
	fail chan error
}

func (r *rough) through(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := r.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &roughConn{c, r.fail}, nil
}

func (c *roughConn) Read(b []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() { n, err := c.Conn.Read(b); done <- result{n, err} }()
	select {
	case r := <-done:
		return r.n, r.err
	case err := <-c.fail:
		c.Conn.Close()
		<-done
		return 0, err
	}
}

// A suspension has its cause, in the log and for subscribers.
func TestSuspensionHasACause(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*zktest.Server, *rough)
		want  string
		wraps error
	}{
		"closed by the server": {func(s *zktest.Server, _ *rough) { s.Disconnect() }, "the server closed the connection", io.EOF},
		"reset": {func(_ *zktest.Server, r *rough) {
			r.fail <- &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
		}, "connection reset by peer", syscall.ECONNRESET},
		"silence": {func(s *zktest.Server, _ *rough) { s.HoldServer(0) }, "no answer for ", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			rough := &rough{srv.Dialer(), make(chan error)}
			m, r := managed(t, "zk1:2181", rough.through)
			live(t, m)
			changes := make(chan hooks.Change, 100)
			m.Subscribe(func(c hooks.Change) { changes <- c })
			time.Sleep(time.Minute)
			<-changes // the present state
			c.do(srv, rough)
			got := <-changes
			time.Sleep(time.Second)
			line := wantLine(t, r, slog.LevelWarn, "zookeeper session suspended", " server=zk1:2181 ", ` cause="`+c.want, " remaining=")
			if got.To != hooks.Suspended || got.Err == nil || !strings.HasPrefix(got.Err.Error(), "connection to zk1:2181: "+c.want) ||
				c.wraps != nil && !errors.Is(got.Err, c.wraps) {
				t.Errorf("%s: %v because of %v", name, got.To, got.Err)
			}
			t.Log(line.Text)
			srv.ReleaseServer(0)
		})
	}
}
