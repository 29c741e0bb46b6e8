package session_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/authority"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// onFailure is a log handler that calls a function when an attempt to connect has failed.
type onFailure struct {
	slog.Handler
	f func()
}

func (h onFailure) Enabled(context.Context, slog.Level) bool { return true }
func (h onFailure) Handle(_ context.Context, r slog.Record) error {
	// A name can have an IPv6 address too, at which no server listens.
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	failed := strings.Contains(text, "failed")
	busy := strings.Contains(text, "dial ") && strings.Contains(text, "no answer within") // the machine
	if failed && !busy && !strings.Contains(text, "connection refused") {
		h.f()
	}
	return nil
}

// refusedConnect connects until the first failure, and returns the error of Connect. Connect
// itself would try again, because a server that cannot be trusted now may be trusted later.
func refusedConnect(t *testing.T, server string, cfg *tls.Config) error {
	t.Helper()
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	returned := make(chan struct{})
	failed := func() { cancel(); <-returned } // so that no other failure follows
	m, err := session.Connect(ctx, server, session.WithTLS(cfg), session.WithTimeout(time.Minute),
		session.WithLogger(slog.New(onFailure{slog.DiscardHandler, failed})))
	close(returned)
	if err == nil {
		m.Close()
	}
	wantErr(t, "connect", err, context.Canceled)
	t.Log(err)
	return err
}

// The error of a client and a server that do not trust each other says why. With TLS 1.3 a client hears that it is refused only
// after its own part of the handshake, when it waits for the greeting: package security has that.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	ours, theirs, later := authority.New(t, "ours"), authority.New(t, "theirs"), time.Now().Add(time.Hour)
	plain := testserver.Server(t).Addr(0)
	front := authority.FrontWith(t, plain, &tls.Config{
		Certificates: []tls.Certificate{ours.Issue(t, "server", later)}, MaxVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.Pool,
	})
	_, port, err := net.SplitHostPort(front)
	must(t, err)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	for what, c := range map[string]struct {
		server string
		roots  *x509.CertPool
		certs  []tls.Certificate
		why    any    // the type of the error, or nil
		says   string // what the error says
	}{
		"another authority":   {front, theirs.Pool, nil, &unknown, "unknown authority"},
		"another name":        {"127.0.0.1:" + port, ours.Pool, nil, &name, "127.0.0.1"},
		"TLS to a plain port": {plain, ours.Pool, nil, nil, "TLS handshake with " + plain},
		"no certificate":      {front, ours.Pool, nil, nil, "remote error: tls: "},
		"a certificate by others": {
			front, ours.Pool, []tls.Certificate{theirs.Issue(t, "client", later)}, nil, "remote error: tls: ",
		},
		"a certificate that has ended": {
			front, ours.Pool, []tls.Certificate{ours.Issue(t, "client", time.Now().Add(-time.Hour))}, nil, "remote error: tls: ",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			err := refusedConnect(t, c.server, &tls.Config{RootCAs: c.roots, Certificates: c.certs})
			if c.why != nil && !errors.As(err, c.why) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
}

// With mutual TLS the client's certificate is its identity, which ACLs can name. A session survives a restart of the server.
func TestMutualTLS(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	ours, later := authority.New(t, "ours"), time.Now().Add(time.Hour)
	e := zktest.StartReal(t, zktest.SecurePort(), zktest.Property("ssl.trustStore.location", ours.File(t)),
		zktest.Property("ssl.keyStore.location", authority.KeyFile(t, ours.Issue(t, "server", later))))
	m := testserver.Connect(t, e.SecureAddr(0),
		session.WithTimeout(time.Minute),
		session.WithTLS(&tls.Config{RootCAs: ours.Pool, Certificates: []tls.Certificate{ours.Issue(t, "client", later)}}),
		session.WithACL(zk.ACL{Perms: zk.PermAll, Scheme: "x509", ID: "CN=client"}))
	mx, err := zklock.New(m, testserver.Path(t))
	must(t, err)
	lease, err := mx.Acquire(patient(t))
	must(t, err)
	must(t, e.Restart(t.Context(), 0))
	must(t, testserver.Session(t, m).Sync(patient(t), "/"))
	must(t, lease.Err())

	stranger := testserver.Session(t, testserver.Connect(t, e.Addr(0)))
	_, _, err = stranger.Get(patient(t), lease.Path())
	wantErr(t, "a Get of a client without a certificate", err, zk.ErrNoAuth)
	must(t, lease.Release(patient(t)))
}

// epoch is the certificates of both sides, all from one authority.
type epoch struct {
	roots          *x509.CertPool
	client, server tls.Certificate
}

func newEpoch(t *testing.T, name string) *epoch {
	a, later := authority.New(t, name), time.Now().Add(time.Hour)
	return &epoch{a.Pool, a.Issue(t, name+" client", later), a.Issue(t, name+" server", later)}
}

// verify returns a function for tls.Config.VerifyConnection that asks for the authorities anew.
func verify(roots func() (*x509.CertPool, error)) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		pool, err := roots()
		if err != nil {
			return err
		}
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: s.ServerName, Roots: pool, Intermediates: between})
		return err
	}
}

// The authority, and the certificates of servers and client, are replaced while a manager runs. Its next connection
// uses the new ones, and the session lives. A server with a certificate of the old authority is refused by then.
func TestTLSRenewed(t *testing.T) {
	t.Parallel()
	old, renewed := newEpoch(t, "old"), newEpoch(t, "renewed")
	var ours, theirs atomic.Pointer[epoch] // what each side has now
	ours.Store(old)
	theirs.Store(old)
	clients := make(chan string, 100)
	front := authority.FrontWith(t, testserver.Server(t).Addr(0), &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		e := theirs.Load()
		return &tls.Config{
			Certificates: []tls.Certificate{e.server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: e.roots,
			VerifyConnection: func(s tls.ConnectionState) error {
				clients <- s.PeerCertificates[0].Subject.CommonName
				return nil
			},
		}, nil
	}})
	var mu sync.Mutex
	var conns []net.Conn
	m := testserver.Connect(t, front, session.WithTimeout(time.Minute),
		session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, c)
			return c, err
		}),
		session.WithTLS(&tls.Config{
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &ours.Load().client, nil },
			InsecureSkipVerify:   true, // VerifyConnection does it
			VerifyConnection:     verify(func() (*x509.CertPool, error) { return ours.Load().roots, nil }),
		}))
	s := testserver.Session(t, m)
	must(t, s.Sync(patient(t), "/"))
	if got := expect.Receive(t, "a client", clients); got != "old client" {
		t.Errorf("the client was %q", got)
	}

	ours.Store(renewed)
	theirs.Store(renewed)
	must(t, s.Sync(patient(t), "/")) // the connection stays
	mu.Lock()
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
	mu.Unlock()
	must(t, s.Sync(patient(t), "/"))
	if got := expect.Receive(t, "a client", clients); got != "renewed client" {
		t.Errorf("the client was %q", got)
	}
	must(t, s.Err())

	theirs.Store(old)
	refusedConnect(t, front, &tls.Config{
		InsecureSkipVerify: true,
		VerifyConnection:   verify(func() (*x509.CertPool, error) { return ours.Load().roots, nil }),
	})
}

// The certificates are in files that are replaced while the program runs, for example by cert-manager. Each connection
// reads them anew.
func ExampleWithTLS_renewed() {
	roots := func() (*x509.CertPool, error) {
		text, err := os.ReadFile("/etc/shop/ca.pem")
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(text)
		return pool, err
	}
	m, err := session.Connect(context.Background(), "zk1:2281,zk2:2281,zk3:2281", session.WithTLS(&tls.Config{
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			own, err := tls.LoadX509KeyPair("/etc/shop/cert.pem", "/etc/shop/key.pem")
			return &own, err
		},
		InsecureSkipVerify: true, // VerifyConnection verifies the servers instead, with authorities that can change
		VerifyConnection: func(s tls.ConnectionState) error {
			pool, err := roots()
			if err != nil {
				return err
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: s.ServerName, Roots: pool, Intermediates: between})
			return err
		},
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}
