package session_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// After ten disconnections there is one watch and one session, and no goroutine is left of any of
// them.
func TestDisconnectionsLeaveNothing(t *testing.T) {
	longtest.Only(t)
	p, _, s := behindProxy(t, 20*time.Second)
	d, ctx := dir(t, s), patient(t)
	node, err := s.Create(ctx, d+"/n", nil, session.Ephemeral)
	must(t, err)
	_, _, w, err := s.Watch(ctx, node)
	must(t, err)
	before := runtime.NumGoroutine()
	for range 10 {
		p.Disconnect()
		wantEvent(t, w, session.WatchBroken)
		_, _, w, err = s.Watch(ctx, node)
		must(t, err)
	}
	if n := watchers(t, node); n != 1 {
		t.Errorf("%d watches on the server", n)
	}
	const kept = 4 // goroutines that wait for the next request
	zktest.Eventually(t, testserver.Patience, "the goroutines end", func() bool {
		return runtime.NumGoroutine() <= before+kept
	})
	testserver.Delete(t, node)
	wantEvent(t, w, session.WatchDeleted)
	must(t, s.Err())
}

// Heartbeats keep a session that owns nodes alive for several timeouts, even if its rights are
// not enough to read the chroot.
func TestIdleSessionLives(t *testing.T) {
	longtest.Only(t)
	d := testserver.Path(t)
	_, err := testserver.Admin(t).Create(d, nil, 0, zk.WorldACL(zk.PermCreate|zk.PermDelete))
	must(t, err)
	for name, chroot := range map[string]string{"the root": "", "an unreadable chroot": d, "a missing chroot": d + "-none"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout = 4 * time.Second
			p := testserver.Proxy(t)
			s := testserver.Session(t, testserver.Connect(t, p.Addr()+chroot, session.WithTimeout(timeout)))
			if chroot == d {
				_, err := s.Create(patient(t), "/n", nil, session.Ephemeral)
				must(t, err)
			}
			if chroot == "" {
				_, err := s.Create(patient(t), testserver.Path(t), nil, session.Ephemeral)
				must(t, err)
			}
			start := time.Now()
			zktest.Eventually(t, testserver.Patience, "three timeouts", func() bool {
				if err := s.Err(); err != nil {
					t.Fatal(err)
				}
				return time.Since(start) > 3*timeout
			})
		})
	}
}
