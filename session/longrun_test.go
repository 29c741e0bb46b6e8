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
	node, err := makeNode(ctx, s, d+"/n", nil)
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
			// A session that nothing keeps alive is lost each time, one on a busy machine now and then.
			const timeout, tries = 6 * time.Second, 5
			p := testserver.Proxy(t)
			m := testserver.Connect(t, p.Addr()+chroot, session.WithTimeout(timeout))
			var err error
			for range tries {
				if err = livesIdle(t, testserver.Session(t, m), 3*timeout, chroot != d+"-none"); err == nil {
					return
				}
				t.Log(err)
			}
			t.Errorf("lost %d times: %v", tries, err)
		})
	}
}

// livesIdle reports the loss of a session within some time. Before, the session gets a node of its own, or none.
func livesIdle(t *testing.T, s *session.Session, long time.Duration, owns bool) error {
	if owns {
		if _, err := makeNode(patient(t), s, testserver.Path(t)+"/n", nil); err != nil {
			return err
		}
	}
	select {
	case <-s.Done():
	case <-time.After(long):
	}
	return s.Err()
}
