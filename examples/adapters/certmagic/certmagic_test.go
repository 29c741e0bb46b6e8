package certmagic_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	adapter "github.com/turnstile-go/turnstile/examples/adapters/certmagic"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

var (
	_ certmagic.Storage          = (*adapter.Storage)(nil)
	_ certmagic.TryLocker        = (*adapter.Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*adapter.Storage)(nil)
)

const name = "www.example.com"

// replica starts a process with the storage that all replicas of a test share.
func replica(t *testing.T, files string) (*ensemble.Process, *adapter.Storage) {
	t.Helper()
	p := ensemble.Start(t)
	return p, adapter.New(&certmagic.FileStorage{Path: files}, ensemble.Must(zklock.NewKeyed(p.Manager, "/certmagic/"+t.Name())))
}

// This is certmagic's test of its FileStorage.
func TestWriteLock(t *testing.T) {
	_, s := replica(t, t.TempDir())
	ensemble.OK(t, s.Lock(t.Context(), "foo"))
	if err := s.Lock(queue.WithMaxWait(t.Context(), time.Millisecond), "foo"); err == nil {
		t.Error("locked twice")
	}
	if ok, err := s.TryLock(t.Context(), "foo"); ok || err != nil {
		t.Errorf("TryLock of a lock that is held: %v, %v", ok, err)
	}
	ensemble.OK(t, s.Unlock(t.Context(), "foo"))
	if ok, err := s.TryLock(t.Context(), "foo"); !ok || err != nil {
		t.Errorf("TryLock: %v, %v", ok, err)
	}
	ensemble.OK(t, s.Unlock(t.Context(), "foo"))
	ensemble.OK(t, s.Lock(t.Context(), "foo"))
	ensemble.OK(t, s.Unlock(t.Context(), "foo"))
	if err := s.Unlock(t.Context(), "bar"); err != nil {
		t.Errorf("Unlock without a Lock: %v", err)
	}
}

func TestRenewAfterLoss(t *testing.T) {
	p, s := replica(t, t.TempDir())
	ensemble.OK(t, s.Lock(t.Context(), "foo"))
	ensemble.OK(t, s.RenewLockLease(t.Context(), "foo", time.Minute))
	p.Expire(t)
	if err := s.Store(t.Context(), "x", nil); !errors.Is(err, session.ErrLost) {
		t.Errorf("Store after a loss: %v", err)
	}
	if err := s.RenewLockLease(queue.WithMaxWait(t.Context(), 0), "foo", time.Minute); err == nil {
		t.Error("locked without a wait")
	}
	if err := s.Store(t.Context(), "x", nil); !errors.Is(err, session.ErrLost) {
		t.Errorf("Store after a renewal that failed: %v", err)
	}
	ensemble.OK(t, s.RenewLockLease(t.Context(), "foo", time.Minute))
	ensemble.OK(t, s.Store(t.Context(), "x", nil))
	ensemble.OK(t, s.Unlock(t.Context(), "foo"))
}

// issuer is a certificate authority. wait, if it is not nil, is called before it issues.
type issuer struct {
	key    crypto.Signer
	issued *atomic.Int64
	wait   func()
}

func (issuer) IssuerKey() string { return "test" }

func (i issuer) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if i.wait != nil {
		i.wait()
	}
	now := time.Now()
	cert := &x509.Certificate{SerialNumber: big.NewInt(i.issued.Add(1)), DNSNames: csr.DNSNames, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, csr.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Metadata: "none"}, nil
}

// config returns certmagic on a storage.
func config(t *testing.T, s certmagic.Storage, i issuer) *certmagic.Config {
	t.Helper()
	var cfg *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil },
		Logger:           zap.NewNop(),
	})
	t.Cleanup(cache.Stop)
	cfg = certmagic.New(cache, certmagic.Config{Storage: s, Issuers: []certmagic.Issuer{i}, Logger: zap.NewNop()})
	return cfg
}

// check requires that the key and the certificate in the storage belong together, and returns them.
func check(t *testing.T, s certmagic.Storage) []byte {
	t.Helper()
	key := ensemble.Must(s.Load(t.Context(), certmagic.StorageKeys.SitePrivateKey("test", name)))
	cert := ensemble.Must(s.Load(t.Context(), certmagic.StorageKeys.SiteCert("test", name)))
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
	return append(cert, key...)
}

func TestReplicasOrderOnce(t *testing.T) {
	const replicas = 3
	files := t.TempDir()
	ca := issuer{key: ensemble.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), issued: new(atomic.Int64)}
	ended := make(chan error, replicas)
	var last certmagic.Storage
	for range replicas {
		_, s := replica(t, files)
		cfg := config(t, s, ca)
		go func() { ended <- cfg.ObtainCertSync(t.Context(), name) }()
		last = s
	}
	for range replicas {
		ensemble.OK(t, ensemble.Wait(t, ended, "the certificate"))
	}
	if n := ca.issued.Load(); n != 1 {
		t.Errorf("%d certificates were issued", n)
	}
	check(t, last)
}

// A replica loses its lock while the authority issues. Another one obtains a certificate meanwhile. That of the first is
// not stored.
func TestLoss(t *testing.T) {
	files := t.TempDir()
	ca := issuer{key: ensemble.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), issued: new(atomic.Int64)}
	begun, goOn := make(chan struct{}), make(chan struct{})
	slow := ca
	slow.wait = func() {
		close(begun)
		<-goOn
	}
	p, first := replica(t, files)
	_, second := replica(t, files)
	cfg := config(t, first, slow)
	ended := make(chan error, 1)
	go func() { ended <- cfg.ObtainCertSync(t.Context(), name) }()
	ensemble.Wait(t, begun, "the order of the first replica")
	p.Expire(t)
	ensemble.OK(t, config(t, second, ca).ObtainCertSync(t.Context(), name))
	want := check(t, second)
	close(goOn)
	if err := ensemble.Wait(t, ended, "the first replica has ended"); err == nil {
		t.Error("the first replica has stored its certificate")
	}
	if !bytes.Equal(check(t, second), want) || ca.issued.Load() != 2 {
		t.Error("the files of the second replica have changed")
	}
	ensemble.OK(t, cfg.ObtainCertSync(t.Context(), name)) // finds that of the second
	if ca.issued.Load() != 2 {
		t.Error("one more was ordered")
	}
}
