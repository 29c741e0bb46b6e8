package saslkrb5_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/saslkrb5"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

var (
	must    = expect.NoError
	patient = expect.Patient
)

func connect(t *testing.T, server string, m session.SASLMechanism, opts ...session.Option) *session.Manager {
	t.Helper()
	quiet := session.WithLogger(slog.New(slog.DiscardHandler))
	mgr, err := session.Connect(patient(t), server, append(opts, quiet, session.WithTimeout(30*time.Second),
		session.WithTickTime(500*time.Millisecond), session.WithSASL(m))...)
	must(t, err)
	t.Cleanup(func() { _ = mgr.Close() })
	return mgr
}

// A real server that wants Kerberos serves clients with a keytab and with a credential cache. A lock is closed to all but
// one principal. Reconnects use the ticket that the client has, also while the KDC is down.
func TestKerberos(t *testing.T) {
	k := startKDC(t)
	shop, other := k.keytab(t, "shop"), k.keytab(t, "other")
	server := k.zookeeper(t)

	byKeytab, err := saslkrb5.FromKeytab(k.conf, shop, "shop@"+realm)
	must(t, err)
	t.Cleanup(byKeytab.Close)
	p := zktest.StartProxy(t, server)
	m := connect(t, p.Addr(), named{byKeytab}, session.WithACL(zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: "shop@" + realm}))
	lock, err := zklock.New(m, "/closed/lock")
	must(t, err)
	lease, err := lock.Acquire(patient(t))
	must(t, err)

	byCache, err := saslkrb5.FromCache(k.conf, "FILE:"+k.cache(t, "shop", shop), saslkrb5.WithServer("zookeeper/localhost"))
	must(t, err)
	t.Cleanup(byCache.Close)
	// Names of hosts have no case. The principals of services are in lower case.
	for _, host := range []string{"LOCALHOST", "LocalHost"} {
		s, err := connect(t, strings.Replace(server, "localhost", host, 1), byKeytab).Session(patient(t))
		must(t, err)
		must(t, s.Sync(patient(t), "/"))
	}

	s, err := connect(t, server, byCache).Session(patient(t))
	must(t, err)
	children, _, err := s.Children(patient(t), "/closed/lock")
	must(t, err)
	if len(children) != 1 {
		t.Errorf("contenders %v", children)
	}

	stranger, err := saslkrb5.FromKeytab(k.conf, other, "other@"+realm)
	must(t, err)
	t.Cleanup(stranger.Close)
	s, err = connect(t, server, stranger).Session(patient(t))
	must(t, err)
	if _, _, err := s.Children(patient(t), "/closed/lock"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("another principal's listing: %v", err)
	}

	k.stop()
	p.Disconnect()
	s, err = m.Session(patient(t))
	must(t, err)
	must(t, s.Sync(patient(t), "/"))
	must(t, lease.Err())
	must(t, lease.Release(patient(t)))
}

// named is a mechanism for servers behind a proxy, whose host is localhost for Kerberos.
type named struct{ session.SASLMechanism }

func (n named) Start(ctx context.Context, _ string) (session.SASLExchange, []byte, error) {
	return n.SASLMechanism.Start(ctx, "localhost")
}

// A server that knows no Kerberos is refused, and so is one that has other keys than the KDC: it cannot read the ticket.
func TestKerberosRefused(t *testing.T) {
	k := startKDC(t)
	shop := k.keytab(t, "shop")
	server := k.zookeeper(t)
	k.run(t, "kadmin.local", "-r", realm, "-q", "cpw -randkey zookeeper/localhost")
	without := zktest.Start(t)
	m, err := saslkrb5.FromKeytab(k.conf, shop, "shop@"+realm)
	must(t, err)
	t.Cleanup(m.Close)
	for name, addr := range map[string]string{"other keys": server, "no SASL": without.Addr()} {
		mgr, err := session.Connect(patient(t), addr, session.WithSASL(named{m}), session.WithLogger(slog.New(slog.DiscardHandler)))
		if mgr != nil {
			mgr.Close()
		}
		if !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v", name, err)
	}

	// Without a KDC there is no ticket, and Connect says so.
	k.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = session.Connect(ctx, server, session.WithSASL(m), session.WithLogger(slog.New(slog.DiscardHandler)))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a KDC: %v", err)
	}
	t.Log(err)
}

func TestBadArguments(t *testing.T) {
	for name, f := range map[string]func() (*saslkrb5.Mechanism, error){
		"no realm":  func() (*saslkrb5.Mechanism, error) { return saslkrb5.FromKeytab("/etc/krb5.conf", "/none", "shop") },
		"no keytab": func() (*saslkrb5.Mechanism, error) { return saslkrb5.FromKeytab("/etc/krb5.conf", "/none", "a@B") },
		"no cache":  func() (*saslkrb5.Mechanism, error) { return saslkrb5.FromCache("/etc/krb5.conf", "/none") },
		"no config": func() (*saslkrb5.Mechanism, error) { return saslkrb5.FromCache("/none", "/none") },
	} {
		if _, err := f(); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
