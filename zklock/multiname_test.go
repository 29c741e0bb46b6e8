package zklock_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Two processes that give the ensembles the same names take equal paths on them in the same order, however
// they write the servers.
func TestMultiOrderOfNamedEnsembles(t *testing.T) {
	const path = "/locks/a"
	ctx := patient(t)
	blue, red := zktest.Start(t), zktest.Start(t)
	connect := func(server *zktest.Server, servers, name string) *session.Manager {
		return testserver.Connect(t, servers, session.WithName(name), session.WithDialer(server.Dialer()))
	}
	blocker := newMutex(t, connect(blue, "h1", "blue"), path)
	must(t, blocker.Lock(ctx))
	at := newMutex(t, connect(red, "h1", "red"), path)
	var finish []func()
	for i, servers := range [][2]string{{"h1", "h2"}, {"h2", "h1"}} {
		all := newMulti(t, newMutex(t, connect(red, servers[0], "red"), path), newMutex(t, connect(blue, servers[1], "blue"), path))
		locked := background(func() error { return all.Lock(ctx) })
		zktest.Eventually(t, testserver.Patience, "the Multi to wait at the first ensemble", func() bool {
			return contenders(t, blocker) == i+2
		})
		if n := contenders(t, at); n != 0 {
			t.Errorf("servers called %v: %d at the second ensemble", servers, n)
		}
		finish = append(finish, func() {
			must(t, receive(t, "Lock", locked))
			must(t, all.Unlock())
		})
	}
	must(t, blocker.Unlock())
	for _, f := range finish {
		f()
	}
}

// contenders returns how many contend. There are none where there is no directory.
func contenders(t *testing.T, mx *zklock.Mutex) int {
	t.Helper()
	all, err := mx.Contenders(patient(t))
	if !errors.Is(err, zk.ErrNoNode) {
		must(t, err)
	}
	return len(all)
}
