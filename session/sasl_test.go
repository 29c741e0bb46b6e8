package session_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/saslserver"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// saslUsers are the users of the servers in these tests.
var saslUsers = map[string]string{"shop": "secret", "other": `qu"o\te`, "müller": "ÿé", "łukasz": "語"}

// realSASL starts a real server with these users. require has it refuse other clients.
func realSASL(t *testing.T, require bool) *zktest.Ensemble {
	t.Helper()
	longtest.InCI(t)
	opts, err := saslserver.Options(t.TempDir(), saslUsers)
	must(t, err)
	return zktest.StartReal(t, append(opts, zktest.Property("sessionRequireClientSASLAuth", fmt.Sprint(require)))...)
}

func inProcessSASL(t *testing.T, require bool) *zktest.Server {
	t.Helper()
	var opts []zktest.Option
	for user, password := range saslUsers {
		opts = append(opts, zktest.SASLUser(user, password))
	}
	if require {
		opts = append(opts, zktest.RequireSASL())
	}
	return zktest.Start(t, opts...)
}

// onSASLServers runs a test on a real server and on one in the process.
func onSASLServers(t *testing.T, require bool, f func(t *testing.T, addr string)) {
	t.Run("real", func(t *testing.T) { t.Parallel(); f(t, realSASL(t, require).Addr(0)) })
	t.Run("in-process", func(t *testing.T) { t.Parallel(); f(t, inProcessSASL(t, require).Addr()) })
}

func refusedSASL(t *testing.T, addr string, opts ...session.Option) error {
	t.Helper()
	m, err := session.Connect(patient(t), addr, append(opts, session.WithLogger(slog.New(slog.DiscardHandler)))...)
	if m != nil {
		_ = m.Close()
	}
	wantErr(t, "connect", err, zk.ErrAuthFailed)
	return err
}

// Servers that insist on SASL serve a client that has a password, on every connection and in every session, and no
// other. A lock works in a directory that is closed to all but one user.
func TestSASL(t *testing.T) {
	t.Parallel()
	onSASLServers(t, true, func(t *testing.T, addr string) {
		p := zktest.StartProxy(t, addr)
		acl := session.WithACL(zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: "shop"})
		m := testserver.Connect(t, p.Addr(), session.WithTimeout(time.Minute), session.WithSASL(session.DigestMD5("shop", "secret")), acl)
		mutex, err := zklock.New(m, "/closed/lock")
		must(t, err)
		lease, err := mutex.Acquire(patient(t))
		must(t, err)
		p.Disconnect()
		must(t, testserver.Session(t, m).Sync(patient(t), "/"))
		must(t, lease.Release(patient(t)))

		other := testserver.Session(t, testserver.Connect(t, addr, session.WithSASL(session.DigestMD5("other", saslUsers["other"]))))
		_, _, err = other.Children(patient(t), "/closed/lock")
		wantErr(t, "another user's listing", err, zk.ErrNoAuth)
		t.Log(refusedSASL(t, addr, session.WithSASL(session.DigestMD5("shop", "guess"))))
		refusedSASL(t, addr, session.WithSASL(session.DigestMD5("nobody", "guess")))

		// A session is closed by a server that insists on SASL for that too.
		s := testserver.Session(t, m)
		p.Refuse(true)
		p.Disconnect()
		p.ResetRequests()
		closed := expect.Go(func() error { return m.Close() })
		p.Refuse(false)
		must(t, expect.Receive(t, "the end of "+fmt.Sprint(s.ID()), closed))
	})
}

// Names and passwords of every alphabet, and with the characters that are quoted.
func TestSASLAlphabets(t *testing.T) {
	t.Parallel()
	onSASLServers(t, false, func(t *testing.T, addr string) {
		for user, password := range saslUsers {
			m := testserver.Connect(t, addr, session.WithSASL(session.DigestMD5(user, password)),
				session.WithACL(zk.AuthACL(zk.PermAll)...))
			s := testserver.Session(t, m)
			must(t, expect.Err(s.Create(patient(t), "/"+user, nil, session.Persistent)))
			_, _, err := s.Get(patient(t), "/"+user)
			must(t, err)
		}
		stranger := testserver.Session(t, testserver.Connect(t, addr))
		_, _, err := stranger.Get(patient(t), "/shop")
		wantErr(t, "a stranger's get", err, zk.ErrNoAuth)
	})
}

// A server without SASL is told from one that takes the password.
func TestSASLUnknown(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"shared": testserver.Server(t).Addr(0), "in-process": zktest.Start(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			err := refusedSASL(t, addr, session.WithSASL(session.DigestMD5("shop", "secret")))
			if !strings.Contains(err.Error(), "does not authenticate clients by SASL") {
				t.Errorf("%v does not say why", err)
			}
		})
	}
}

// Connections are cut all the time, often within an exchange. No other request is sent ahead of it: the server would
// refuse it.
func TestSASLBeforeAllElse(t *testing.T) {
	t.Parallel()
	onSASLServers(t, true, func(t *testing.T, addr string) {
		p := zktest.StartProxy(t, addr)
		m := testserver.Connect(t, p.Addr(), session.WithTimeout(time.Minute), session.WithSASL(session.DigestMD5("shop", "secret")),
			session.WithAuth("digest", []byte("us:too")),
			session.WithBackoff(time.Millisecond, time.Millisecond))
		s := testserver.Session(t, m)
		const cuts = 12
		over := make(chan struct{})
		ctx := patient(t)
		go func() {
			defer close(over)
			for i := range cuts {
				op := []zktest.Op{zktest.OpConnect, zktest.OpSASL, zktest.OpAuth, zktest.OpGetData}[i%4]
				cut := p.CutBefore
				if i%8 > 3 {
					cut = p.CutAfterCommit
				}
				fault := cut(zktest.Any(op))
				p.Disconnect()
				select {
				case <-fault.Hit():
				case <-ctx.Done():
					return
				}
			}
		}()
		for done := false; !done; {
			select {
			case <-over:
				done = true // and once more
			default:
			}
			_, _, err := s.Get(ctx, "/")
			must(t, err)
		}
		must(t, s.Err())
		// By connection, since the last requests of one that is cut can arrive beside the first of the next.
		sent := map[int64][]zktest.Op{}
		for _, r := range p.Requests() {
			if r.Op != zktest.OpPing {
				sent[r.Conn] = append(sent[r.Conn], r.Op)
			}
		}
		first := []zktest.Op{zktest.OpConnect, zktest.OpSASL, zktest.OpSASL, zktest.OpAuth}
		for conn, ops := range sent {
			n := min(len(ops), len(first))
			if !slices.Equal(ops[:n], first[:n]) {
				t.Errorf("connection %d sent %v", conn, ops)
			}
		}
	})
}
