// Package authority issues certificates, for tests of clients and servers that speak TLS.
package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
)

// Authority issues certificates.
type Authority struct {
	Pool *x509.CertPool // trusts the authority
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-48 * time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	expect.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	expect.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &Authority{pool, cert, key}
}

// Issue makes a certificate for localhost that expires at the given time, for a client or a
// server.
func (a *Authority) Issue(t testing.TB, name string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{"localhost"},
		NotBefore:    until.Add(-24 * time.Hour),
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	expect.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Front takes TLS off connections to target, from clients that have a certificate of the authority. It returns its address.
func (a *Authority) Front(t testing.TB, target string) string {
	t.Helper()
	return FrontWith(t, target, &tls.Config{
		Certificates: []tls.Certificate{a.Issue(t, "server", time.Now().Add(time.Hour))},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: a.Pool,
	})
}

// FrontWith takes TLS off connections to target. It returns its address.
func FrontWith(t testing.TB, target string, cfg *tls.Config) string {
	t.Helper()
	l, err := tls.Listen("tcp4", "127.0.0.1:0", cfg)
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
				if client.(*tls.Conn).Handshake() != nil {
					return
				}
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

// KeyFile writes a certificate and its key in the format of the server.
func KeyFile(t testing.TB, c tls.Certificate) string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	expect.NoError(t, err)
	return pemFile(t, "key.pem", &pem.Block{Type: "PRIVATE KEY", Bytes: key},
		&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
}

// File writes the authority's certificate in the format of the server's trust store.
func (a *Authority) File(t testing.TB) string {
	t.Helper()
	return pemFile(t, "trust.pem", &pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func pemFile(t testing.TB, name string, blocks ...*pem.Block) string {
	t.Helper()
	var b bytes.Buffer
	for _, block := range blocks {
		expect.NoError(t, pem.Encode(&b, block))
	}
	file := filepath.Join(t.TempDir(), name)
	expect.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	return file
}
