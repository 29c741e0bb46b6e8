package cli

import (
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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// anyCommand is a command that connects.
func anyCommand(t *testing.T, flags ...string) []string {
	t.Helper()
	return append(append([]string{"run"}, flags...), testserver.Path(t), "--", "true")
}

// Errors name the server and the reason.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	secure, ca := startTLS(t, "")
	for what, c := range map[string]struct {
		flags []string
		texts []string
	}{
		"refused": {[]string{"--zk", "127.0.0.1:1"}, []string{"127.0.0.1:1", "connection refused"}},
		"unknown": {[]string{"--zk", "no..host:2181"}, []string{"no..host", "no such host"}},
		"TLS, unknown authority": {[]string{"--zk", secure, "--cacert", writeCertificate(t)},
			[]string{secure, "signed by unknown authority"}},
		"TLS, other name": {[]string{"--zk", secure, "--cacert", ca, "--tls-server-name", "zk.example.com"},
			[]string{secure, "failed to verify certificate", "zk.example.com"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			// On a busy machine the first attempt can take long, and the error says so.
			bound, got := "500ms", result{}
			for _, bound = range []string{"500ms", "3s", "20s"} {
				got = call(t.Context(), nil, anyCommand(t, append(c.flags, "--connect-timeout", bound)...)...)
				if strings.Contains(got.err, c.texts[1]) {
					break
				}
			}
			got.want(t, codeConnect, append(c.texts, "within "+bound)...)
		})
	}
}

// A server that takes connections and never answers is told from one that refuses them.
func TestConnectSilence(t *testing.T) {
	t.Parallel()
	proxy := testserver.Proxy(t)
	proxy.Blackhole(zktest.Both)
	// On a busy machine no handshake may have begun after a short time.
	var got result
	for _, bound := range []string{"300ms", "3s", "20s"} {
		got = call(t.Context(), nil, anyCommand(t, "--zk", proxy.Addr(), "--connect-timeout", bound)...)
		t.Log(got.err)
		if strings.Contains(got.err, "answer") {
			break
		}
	}
	got.want(t, codeConnect, proxy.Addr(), "answer")
}

// Identities come from the command line, the environment or a file. Without one, or with a wrong
// one, the servers refuse.
func TestAuth(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	acl := append(zk.DigestACL(zk.PermAll, "user", "pass:word"), zk.DigestACL(zk.PermAll, "other", "secret")...)
	if _, err := testserver.Admin(t).Create(path, nil, 0, acl); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(file, []byte("# identities\n\ndigest:user:pass:word\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := "TURNSTILE_ZK=" + testserver.Server(t).ConnectString()
	run := func(env string, flags ...string) result {
		return call(t.Context(), []string{servers, env}, append(append([]string{"run"}, flags...), path, "--", "true")...)
	}
	run("").want(t, codeRefused)
	run("", "--auth", "digest:user:wrong").want(t, codeRefused)
	run("", "--auth", "nonsense:secret").want(t, codeRefused, "nonsense")
	run("", "--auth", "digest:user:pass:word").want(t, 0)
	run("", "--auth", "digest:nobody:x", "--auth", "digest:other:secret").want(t, 0)
	run("", "--auth-file", file).want(t, 0)
	run("TURNSTILE_AUTH=digest:nobody:x\ndigest:other:secret").want(t, 0)
	run("TURNSTILE_AUTH_FILE="+file).want(t, 0)
	for _, got := range []result{run("", "--auth", "secret"), run("TURNSTILE_AUTH=secret")} {
		got.want(t, codeUsage, "scheme:credentials")
		if strings.Contains(got.err, "secret") {
			t.Errorf("the error has the secret: %s", got.err)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	secure, ca := startTLS(t, testserver.Server(t).Addr(0))
	key := strings.TrimSuffix(ca, ".pem") + ".key"
	for _, flags := range [][]string{
		{"--cacert", ca, "--cert", ca, "--key", key},
		{"--insecure-skip-tls-verify", "--cert", ca, "--key", key},
	} {
		call(t.Context(), nil, anyCommand(t, append(flags, "--zk", secure)...)...).want(t, 0)
	}
	call(t.Context(), nil, anyCommand(t, "--zk", secure, "--cert", key, "--key", key)...).want(t, codeUsage, "--cert")
	call(t.Context(), nil, anyCommand(t, "--zk", secure, "--cacert", key)...).want(t, codeUsage, "no PEM certificate")
}

// startTLS starts a server that speaks TLS, has a certificate for 127.0.0.1 and demands one of its
// clients. It hands all on to another server. It returns its address and a file with its certificate. The key is
// beside that.
func startTLS(t *testing.T, target string) (addr, certFile string) {
	t.Helper()
	certFile = writeCertificate(t)
	pair, err := tls.LoadX509KeyPair(certFile, strings.TrimSuffix(certFile, ".pem")+".key")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	t.Cleanup(func() { listener.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { handOn(conn, target) })
		}
	})
	return listener.Addr().String(), certFile
}

// handOn connects a client with a server until either side closes.
func handOn(conn net.Conn, target string) {
	defer conn.Close()
	if conn.(*tls.Conn).Handshake() != nil || target == "" {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(conn, server); conn.Close() })
	_, _ = io.Copy(server, conn)
	server.Close()
	back.Wait()
}

// writeCertificate makes a certificate for 127.0.0.1, and files with it and its key.
func writeCertificate(t *testing.T) (certFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(t.TempDir(), "tls")
	for name, block := range map[string]*pem.Block{
		base + ".pem": {Type: "CERTIFICATE", Bytes: cert}, base + ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return base + ".pem"
}
