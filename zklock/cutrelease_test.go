package zklock_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A process unlocks at about the time at which its connection breaks, and locks again. The delete that it owes leaves on the
// new connection before the create, so it never waits for its own node, and it has the lock as soon as it has a connection.
func TestLockAgainAfterCut(t *testing.T) {
	const cuts = 1000
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.Delay(2 * time.Millisecond)
		m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(srv.Dialer()), session.WithTimeout(10*time.Second),
			session.WithLogger(slog.New(slog.DiscardHandler)),
			session.WithBackoff(time.Millisecond, 10*time.Millisecond))
		must(t, err)
		defer m.Close()
		var locks []*zklock.Mutex
		for i := range 4 {
			var opts []zklock.Option
			if i%2 == 1 {
				opts = append(opts, zklock.WithAsyncRelease())
			}
			locks = append(locks, newMutex(t, m, fmt.Sprint("/locks/", i), opts...))
		}
		rng := rand.New(rand.NewPCG(1, 2))
		upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
		isDelete := zktest.Any(zktest.OpDelete)
		for i := range cuts { // each lock is held for less than 5 ms, after which a holder watches its own node
			mx := locks[i%len(locks)]
			must(t, mx.Lock(t.Context()))
			var healed chan struct{}
			switch rng.IntN(4) {
			case 0:
				srv.CutBefore(isDelete)
			case 1:
				srv.CutAfterCommit(isDelete)
			case 2: // an outage, which ends before or after the next Lock begins
				srv.Refuse(true)
				srv.Disconnect()
				healed = make(chan struct{})
				go func() {
					defer close(healed)
					time.Sleep(time.Duration(i%50) * time.Millisecond)
					srv.Refuse(false)
				}()
				time.Sleep(upTo(4 * time.Millisecond))
			case 3:
				time.AfterFunc(upTo(10*time.Millisecond), srv.Disconnect)
				time.Sleep(upTo(4 * time.Millisecond))
			}
			must(t, mx.Unlock())
			must(t, mx.Lock(t.Context()))
			if srv.Count(zktest.Any(zktest.OpGetData)) > 0 {
				t.Fatalf("after cut %d, Lock watches another node", i+1)
			}
			must(t, mx.Unlock())
			if healed != nil {
				<-healed
			}
		}
	})
}
