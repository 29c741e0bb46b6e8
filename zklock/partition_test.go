package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// If only the way back is cut, the requests of the holder keep its session alive on the server. Its stale node
// must not keep other contenders waiting: the lost session is closed once the server can be reached, long before
// it would expire. In virtual time, the time that the rival waits is the protocol's alone.
func TestStaleNodeGoesAfterHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 12 * time.Second
		server := zktest.Start(t)
		open := func(timeout time.Duration) *session.Manager {
			return testserver.Connect(t, "zookeeper", session.WithDialer(server.Dialer()), session.WithTimeout(timeout))
		}
		holder := newMutex(t, open(timeout), "/stale")
		// The rival is cut off too, and its session lives through that.
		rival := newMutex(t, open(3*timeout), "/stale")
		lease, err := holder.Acquire(t.Context())
		must(t, err)
		entered := background(func() error {
			err := rival.Lock(t.Context())
			if lease.Err() == nil {
				err = errors.Join(err, errors.New("the rival got in while the holder still held"))
			}
			return err
		})
		synctest.Wait()
		server.Blackhole(zktest.ToClient)
		<-lease.Done()
		wantErr(t, "lease", lease.Err(), session.ErrLost)
		pending(t, "Lock of the rival, before the server can have expired anything", entered)
		healed := time.Now()
		server.Heal()
		must(t, <-entered)
		// The server last heard of the session when the silent connection was given up,
		// some time after the cut, so it would have kept the node for more than a sixth of a
		// timeout from here.
		waited := time.Since(healed)
		t.Logf("the rival got in %v after the network was back", waited)
		if waited > timeout/6 {
			t.Errorf("the rival got in %v after the network was back", waited)
		}
		must(t, rival.Unlock())
	})
}
