package session_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/authority"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

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
	port := terminator(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
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
	m := testserver.Connect(t, "localhost:"+port, session.WithTimeout(time.Minute),
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
	if got := within(t, clients, "a client"); got != "old client" {
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
	if got := within(t, clients, "a client"); got != "renewed client" {
		t.Errorf("the client was %q", got)
	}
	must(t, s.Err())

	theirs.Store(old)
	refusedConnect(t, "localhost:"+port, &tls.Config{
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
