package dial

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// deadlineless is a connection without deadlines, as through an SSH channel.
type deadlineless struct{ net.Conn }

var errNoDeadlines = errors.New("deadlines are not supported")

func (deadlineless) SetDeadline(time.Time) error      { return errNoDeadlines }
func (deadlineless) SetReadDeadline(time.Time) error  { return errNoDeadlines }
func (deadlineless) SetWriteDeadline(time.Time) error { return errNoDeadlines }

// selfSigned returns a server's TLS configuration.
func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(forever)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// tlsPipe makes a TLS connection through the dialer, without deadlines. It returns the server
// name that the client has sent.
func tlsPipe(t *testing.T, host string, client *tls.Config) (net.Conn, string) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	asked := make(chan string, 1)
	server := selfSigned(t)
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		asked <- hello.ServerName
		return nil, nil
	}
	go func() { _ = tls.Server(far, server).Handshake() }()
	dial := func(context.Context, string, string) (net.Conn, error) { return deadlineless{near}, nil }
	d := newDialer(t, nil, "h1:1", func(c *Config) { c.Dial, c.TLS = dial, client })
	c, err := d.open(t.Context(), Target{Server{host, "1"}, host + ":1"})
	must(t, err)
	return c, <-asked
}

// The server gets the name that the client means, even if the client verifies nothing. The server
// may have several certificates, or several servers behind it.
func TestTLSServerName(t *testing.T) {
	for _, c := range []struct {
		host, name, want string
	}{
		{"zk.example.com", "", "zk.example.com"},
		{"zk.example.com", "other.example.com", "other.example.com"},
		{"192.0.2.1", "", ""}, // an address is no name
	} {
		if _, got := tlsPipe(t, c.host, &tls.Config{ServerName: c.name, InsecureSkipVerify: true}); got != c.want {
			t.Errorf("host %q, configured %q: asked for %q, want %q", c.host, c.name, got, c.want)
		}
	}
}

// The other side reads nothing any more, and the connection has no deadlines. Closing it takes
// only a moment all the same.
func TestTLSCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := tlsPipe(t, "h", &tls.Config{InsecureSkipVerify: true})
		synctest.Wait()
		start := time.Now()
		_ = c.Close()
		if took := time.Since(start); took > tlsCloseTimeout {
			t.Errorf("closed after %v", took)
		}
	})
}
