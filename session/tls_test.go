package session_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// certificate makes a self-signed certificate for localhost, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "localhost"},
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// terminator decrypts TLS connections to the shared server, and returns its port.
func terminator(t *testing.T, cfg *tls.Config) string {
	t.Helper()
	l, err := tls.Listen("tcp4", "127.0.0.1:0", cfg)
	must(t, err)
	target := testserver.Server(t).Addr(0)
	var links sync.WaitGroup
	links.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			links.Go(func() {
				defer client.Close()
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				links.Go(func() { _, _ = io.Copy(client, server); client.Close() })
				_, _ = io.Copy(server, client)
			})
		}
	})
	t.Cleanup(func() { l.Close(); links.Wait() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	port := terminator(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	s := testserver.Session(t, testserver.Connect(t, "localhost:"+port, session.WithTLS(&tls.Config{RootCAs: pool})))
	must(t, s.Sync(patient(t), "/"))
}

// The host of the connect string is verified. The error for a certificate that does not match
// says so.
func TestTLSRefused(t *testing.T) {
	cert, pool := certificate(t)
	_, otherPool := certificate(t)
	port := terminator(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	for name, c := range map[string]struct {
		server string
		pool   *x509.CertPool
	}{
		"another authority": {"localhost:" + port, otherPool},
		"another name":      {"127.0.0.1:" + port, pool},
	} {
		t.Run(name, func(t *testing.T) {
			err := refusedConnect(t, c.server, &tls.Config{RootCAs: c.pool})
			var why *tls.CertificateVerificationError
			if !asError(err, &why) {
				t.Errorf("%v does not say why", err)
			}
		})
	}
}
