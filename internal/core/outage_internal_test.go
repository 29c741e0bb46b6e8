package core

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/fakedns"
	"github.com/turnstile-go/turnstile/zktest"
)

// moving is a name for servers that can all be replaced by others at new addresses. The old
// addresses do not answer a dial.
type moving struct {
	dns  *fakedns.Resolver
	srv  *zktest.Server
	dead atomic.Value // a prefix of addresses
}

func (m *moving) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if strings.HasPrefix(addr, m.dead.Load().(string)) {
		return nil, rounds.Pause(ctx, time.Hour)
	}
	return m.srv.Dialer()(ctx, network, addr)
}

// All servers get new addresses under a session that has been connected for weeks. It is
// connected again within a second after that is possible.
func TestNewAddressesBehindOneName(t *testing.T) {
	for _, c := range []struct{ age, slowDNS time.Duration }{
		{time.Hour, 0},
		{time.Hour, 300 * time.Millisecond},
		{time.Hour, 2 * time.Second},
		{5 * time.Second, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &moving{dns: &fakedns.Resolver{}, srv: zktest.Start(t)}
			m.dns.Set(map[string][]string{"zk": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}}, nil)
			m.dead.Store("none")
			manager, err := connect(t.Context(), "zk:2181", WithLogger(newFakeConfig(t).Log), WithDialer(m.dial),
				func(c *Config) { c.lookup = m.dns.Lookup })
			if err != nil {
				t.Fatal(err)
			}
			defer manager.Close()
			s, err := manager.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.age)
			m.dead.Store("10.0.0.")
			m.dns.Set(map[string][]string{"zk": {"10.0.1.1", "10.0.1.2", "10.0.1.3"}}, map[string]time.Duration{"zk": c.slowDNS})
			m.srv.Disconnect()
			synctest.Wait()
			start := time.Now()
			if err := s.ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			took, most := time.Since(start), time.Second
			switch {
			case c.slowDNS == 0:
				most = 0 // former addresses are not dialled
			case c.slowDNS > 500*time.Millisecond:
				most += c.slowDNS
			}
			if took > most {
				t.Errorf("connected again after %v, with %v for a name", took, c.slowDNS)
			}
		})
	}
}
