package setups

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/authority"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const voters = 3

// setup is one way to set up servers.
type setup struct {
	options  []zktest.RealOption
	tls      *tls.Config // of the clients
	readOnly bool        // servers without a quorum serve readers
	noOwners bool        // a session cannot own nodes
}

func setups(t *testing.T) map[string]setup {
	ours := authority.New(t, "ours")
	server := ours.Issue(t, "server", time.Now().Add(time.Hour))
	local := zktest.Property("localSessionsEnabled", "true")
	return map[string]setup{
		"three servers": {},
		"observer":      {options: []zktest.RealOption{zktest.Observers(1)}},
		"read-only":     {options: []zktest.RealOption{zktest.Environ("JAVA_TOOL_OPTIONS", "-Dreadonlymode.enabled=true")}, readOnly: true},
		"TLS": {
			options: []zktest.RealOption{
				zktest.SecurePort(),
				zktest.Property("ssl.keyStore.location", authority.KeyFile(t, server)),
				zktest.Property("ssl.clientAuth", "none"),
			},
			tls: &tls.Config{RootCAs: ours.Pool},
		},
		"local sessions": {options: []zktest.RealOption{local}, noOwners: true},
		"local sessions that become global": {
			options: []zktest.RealOption{local, zktest.Property("localSessionsUpgradingEnabled", "true")},
		},
	}
}

func TestSetups(t *testing.T) {
	longtest.Only(t)
	for name, c := range setups(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, c)
			if c.noOwners {
				s.refused(t)
				return
			}
			s.everyServer(t)
			s.moved(t)
			if c.readOnly {
				s.quorumLost(t)
			}
		})
	}
}

// everyServer has the clients of all servers hand a mutex to the next client.
func (s *site) everyServer(t *testing.T) {
	path := testserver.Path(t)
	lease := mutex(t, s.connect(t, []int{0}), path)
	for i := 1; i <= s.Len(); i++ {
		next, err := zklock.New(s.connect(t, []int{i % s.Len()}), path)
		expect.NoError(t, err)
		ctx, granted := expect.Patient(t), make(chan error, 1)
		last := lease
		go func() {
			var err error
			lease, err = next.Acquire(ctx)
			granted <- err
		}()
		zktest.Eventually(t, testserver.Bound(), fmt.Sprintf("the client of server %d in the queue", i%s.Len()), func() bool {
			contenders, err := next.Contenders(ctx)
			return err == nil && len(contenders) == 2
		})
		expect.NoError(t, last.Release(ctx))
		expect.NoError(t, expect.Receive(t, "the grant", granted))
	}
	expect.NoError(t, lease.Release(expect.Patient(t)))
}

// mutex returns a mutex that a client has.
func mutex(t *testing.T, m *session.Manager, path string) *queue.Lease {
	t.Helper()
	mx, err := zklock.New(m, path)
	expect.NoError(t, err)
	lease, err := mx.Acquire(expect.Patient(t))
	expect.NoError(t, err)
	return lease
}

// moved moves a session from server to server while it holds a lock.
func (s *site) moved(t *testing.T) {
	way := &road{target: s.addr(0)}
	m := s.connect(t, []int{0}, session.WithDialer(way.dial))
	path := testserver.Path(t)
	lease := mutex(t, m, path)
	id := testserver.Session(t, m).ID()
	for i := 1; i <= s.Len(); i++ {
		way.turn(s.addr(i % s.Len()))
		s.keeps(t, fmt.Sprint("moved to server ", i%s.Len()), m, id, lease)
	}
	expect.NoError(t, lease.Release(expect.Patient(t)))
	expect.NoError(t, mutex(t, s.connect(t, nil), path).Release(expect.Patient(t)))
}

// keeps checks that a client has its session and its lock, once its server has answered.
func (s *site) keeps(t *testing.T, what string, m *session.Manager, id int64, lease *queue.Lease) {
	t.Helper()
	expect.NoError(t, testserver.Session(t, m).Sync(expect.Patient(t), "/"))
	if got := testserver.Session(t, m).ID(); got != id || lease.Err() != nil {
		t.Fatalf("%s: session %#x is now %#x, and the lock says %v", what, id, got, lease.Err())
	}
}

// quorumLost leaves one server, which serves readers only. It gives nobody a lock. A client that holds one
// keeps it unless the outage was too long.
func (s *site) quorumLost(t *testing.T) {
	m, path := s.connect(t, nil), testserver.Path(t)
	lease := mutex(t, m, path)
	other, err := zklock.New(s.connect(t, []int{0}), testserver.Path(t))
	expect.NoError(t, err)
	for _, i := range []int{1, 2} {
		expect.NoError(t, s.Kill(i))
	}
	patient := expect.Patient(t)
	zktest.Eventually(t, testserver.Bound(), "a read-only server", func() bool {
		text, err := s.Word(patient, 0, "isro")
		return err == nil && text == "ro"
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := other.Acquire(ctx); err == nil {
		t.Error("a read-only server gave a lock")
	}
	for _, i := range []int{1, 2} {
		expect.NoError(t, s.Launch(i))
	}
	expect.NoError(t, s.WaitReady(expect.Patient(t)))
	if err := lease.Err(); err == nil {
		expect.NoError(t, lease.Release(expect.Patient(t)))
	} else {
		t.Logf("lost: %v", err)
	}
	expect.NoError(t, mutex(t, s.connect(t, []int{0}), path).Release(expect.Patient(t)))
}

// refused asks for locks where a session cannot own the nodes that locks are made of. The error says so.
func (s *site) refused(t *testing.T) {
	for i := range s.Len() {
		m := s.connect(t, []int{i})
		mx, err := zklock.New(m, testserver.Path(t))
		expect.NoError(t, err)
		const want = "EphemeralOnLocalSession"
		if _, err := mx.Acquire(expect.Patient(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a lock by server %d: error %v, want %s", i, err, want)
		}
		expect.NoError(t, testserver.Session(t, m).Sync(expect.Patient(t), "/"))
	}
}
