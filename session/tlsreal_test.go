package session_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/authority"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// secure starts a real server that speaks TLS.
func secure(t *testing.T, cert tls.Certificate, opts ...zktest.RealOption) *zktest.Ensemble {
	t.Helper()
	return zktest.StartReal(t, append([]zktest.RealOption{
		zktest.SecurePort(),
		zktest.Property("ssl.keyStore.location", authority.KeyFile(t, cert)),
	}, opts...)...)
}

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
	failed := strings.Contains(text, "failed") || strings.Contains(text, "ended")
	if failed && !strings.Contains(text, "connection refused") {
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

// lock takes a lock.
func lock(t *testing.T, m *session.Manager) *queue.Lease {
	t.Helper()
	mx, err := zklock.New(m, testserver.Path(t))
	must(t, err)
	lease, err := mx.Acquire(patient(t))
	must(t, err)
	return lease
}

func TestTLSToARealServer(t *testing.T) {
	t.Parallel()
	ours, theirs := authority.New(t, "ours"), authority.New(t, "theirs")
	e := secure(t, ours.Issue(t, "server", time.Now().Add(time.Hour)), zktest.Property("ssl.clientAuth", "none"))
	m := testserver.Connect(t, e.SecureAddr(0), session.WithTLS(&tls.Config{RootCAs: ours.Pool}))
	must(t, lock(t, m).Release(patient(t)))

	t.Run("another authority", func(t *testing.T) {
		t.Parallel()
		err := refusedConnect(t, e.SecureAddr(0), &tls.Config{RootCAs: theirs.Pool})
		var why x509.UnknownAuthorityError
		if !errors.As(err, &why) {
			t.Errorf("%v does not say why", err)
		}
	})
	t.Run("another name", func(t *testing.T) {
		t.Parallel()
		_, port, err := net.SplitHostPort(e.SecureAddr(0))
		must(t, err)
		err = refusedConnect(t, "127.0.0.1:"+port, &tls.Config{RootCAs: ours.Pool})
		var why x509.HostnameError
		if !errors.As(err, &why) {
			t.Errorf("%v does not say why", err)
		}
	})
	t.Run("TLS to a plain port", func(t *testing.T) {
		t.Parallel()
		err := refusedConnect(t, e.Addr(0), &tls.Config{RootCAs: ours.Pool})
		if !strings.Contains(err.Error(), "TLS handshake with "+e.Addr(0)) {
			t.Errorf("%v does not say why", err)
		}
	})
}

func TestTLSExpiredCertificate(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	ours := authority.New(t, "ours")
	e := secure(t, ours.Issue(t, "server", time.Now().Add(-time.Hour)), zktest.Property("ssl.clientAuth", "none"))
	err := refusedConnect(t, e.SecureAddr(0), &tls.Config{RootCAs: ours.Pool})
	var why x509.CertificateInvalidError
	if !errors.As(err, &why) || why.Reason != x509.Expired {
		t.Errorf("%v does not say why", err)
	}
}

// With mutual TLS the client's certificate is its identity, which ACLs can name. A session
// survives a restart of the server. The error of a client without a certificate says so.
func TestMutualTLS(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	ours, theirs := authority.New(t, "ours"), authority.New(t, "theirs")
	later := time.Now().Add(time.Hour)
	e := secure(t, ours.Issue(t, "server", later), zktest.Property("ssl.trustStore.location", ours.File(t)))
	m := testserver.Connect(t, e.SecureAddr(0),
		session.WithTimeout(time.Minute),
		session.WithTLS(&tls.Config{RootCAs: ours.Pool, Certificates: []tls.Certificate{ours.Issue(t, "client", later)}}),
		session.WithACL(zk.ACL{Perms: zk.PermAll, Scheme: "x509", ID: "CN=client"}))
	s, lease := testserver.Session(t, m), lock(t, m)
	must(t, e.Restart(t.Context(), 0))
	must(t, s.Sync(patient(t), "/"))
	must(t, lease.Err())

	stranger := testserver.Session(t, testserver.Connect(t, e.Addr(0)))
	_, _, err := stranger.Get(patient(t), lease.Path())
	wantErr(t, "a get by who has no certificate", err, zk.ErrNoAuth)
	must(t, lease.Release(patient(t)))

	for name, certs := range map[string][]tls.Certificate{
		"no certificate":               nil,
		"certificate by others":        {theirs.Issue(t, "client", later)},
		"certificate that has run out": {ours.Issue(t, "client", time.Now().Add(-time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refusedConnect(t, e.SecureAddr(0), &tls.Config{RootCAs: ours.Pool, Certificates: certs})
			if !strings.Contains(err.Error(), "remote error: tls: ") {
				t.Errorf("%v does not say why", err)
			}
		})
	}
}

// With TLS 1.3, which the servers of ZooKeeper 3.8 do not speak yet, a client hears that it is
// refused only after its own part of the handshake, when it waits for the greeting.
func TestMutualTLS13(t *testing.T) {
	t.Parallel()
	ours := authority.New(t, "ours")
	port := terminator(t, &tls.Config{
		Certificates: []tls.Certificate{ours.Issue(t, "server", time.Now().Add(time.Hour))},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    ours.Pool,
		MinVersion:   tls.VersionTLS13,
	})
	// The kernel resets a connection with unread data, and the reset can overtake the alert.
	zktest.Eventually(t, testserver.Patience, "the reason", func() bool {
		err := refusedConnect(t, "localhost:"+port, &tls.Config{RootCAs: ours.Pool})
		return strings.Contains(err.Error(), "tls: certificate required")
	})
}
