package zktest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestExpire(t *testing.T) {
	t.Parallel()
	p := zktest.StartProxy(t, sharedServer(t))
	conn, events := connect(t, p.Addr())
	path := testserver.Path(t)
	create(t, conn, path, zk.FlagEphemeral)
	session := conn.SessionID()

	must(t, p.Expire(soon(t), session))
	if exists(t, direct(t), path) {
		t.Error("an ephemeral node has survived its session")
	}
	for {
		if e := receive(t, events, "the event that says the session expired"); e.State == zk.StateExpired {
			break
		}
	}
	zktest.Eventually(t, testserver.Patience, "a new session", func() bool {
		return conn.State() == zk.StateHasSession && conn.SessionID() != session
	})
	ids := p.Sessions()
	if len(ids) != 2 || ids[0] != session || ids[1] != conn.SessionID() {
		t.Errorf("sessions %#x, want %#x then %#x", ids, session, conn.SessionID())
	}
	if err := p.Expire(soon(t), session); err != nil {
		t.Errorf("expiring what has expired: %v", err)
	}
}

// During a partition the client does not learn that its session has expired. It does when the partition is over.
func TestExpireBehindBlackhole(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	create(t, conn, path, zk.FlagEphemeral)
	session := conn.SessionID()
	p.Blackhole(zktest.Both)
	must(t, p.Expire(soon(t), session))
	if exists(t, direct(t), path) {
		t.Error("an ephemeral node has survived its session")
	}
	p.Heal()
	zktest.Eventually(t, 20*time.Second, "a new session", func() bool {
		return conn.State() == zk.StateHasSession && conn.SessionID() != session
	})
}
