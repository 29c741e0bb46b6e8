package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
)

// certificate makes a self-signed certificate for localhost, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	expect.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	expect.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// front takes TLS off connections to target, from clients that have a certificate, and
// returns its address.
func front(t *testing.T, cert tls.Certificate, clients *x509.CertPool, target string) string {
	t.Helper()
	l, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
	})
	expect.NoError(t, err)
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
	expect.NoError(t, err)
	return "localhost:" + port
}
