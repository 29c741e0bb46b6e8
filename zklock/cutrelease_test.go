package zklock_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A process unlocks at about the time at which its connection breaks, and locks again. The delete that it owes leaves on the
// new connection before the create, so it never waits for its own node, and it has the lock as soon as it has a connection.
func TestLockAgainAfterCut(t *testing.T) {
	const cuts = 1000
	run(t, func(w *world) {
		w.Delay(2 * time.Millisecond)
		m := w.Connect(session.WithBackoff(time.Millisecond, 10*time.Millisecond))
		var locks []*zklock.Mutex
		for i, opts := range [][]zklock.Option{nil, {async}, nil, {async}} {
			locks = append(locks, newMutex(t, m, fmt.Sprint("/locks/", i), opts...))
		}
		rng := rand.New(rand.NewPCG(1, 2))
		upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
		isDelete := zktest.Any(zktest.OpDelete)
		for i := range cuts { // each lock is held for less than 5 ms, after which a holder watches its own node
			mx := locks[i%len(locks)]
			w.Must(mx.Lock(w.Context()))
			healed := make(chan struct{})
			heal := func() { close(healed) }
			switch rng.IntN(4) {
			case 0:
				w.CutBefore(isDelete)
				heal()
			case 1:
				w.CutAfterCommit(isDelete)
				heal()
			case 2: // an outage, which ends before or after the next Lock begins
				w.Refuse(true)
				w.Disconnect()
				time.AfterFunc(time.Duration(i%50)*time.Millisecond, func() { w.Refuse(false); heal() })
				time.Sleep(upTo(4 * time.Millisecond))
			case 3:
				time.AfterFunc(upTo(10*time.Millisecond), w.Disconnect)
				time.Sleep(upTo(4 * time.Millisecond))
				heal()
			}
			w.Must(mx.Unlock())
			w.Must(mx.Lock(w.Context()))
			if w.Count(zktest.Any(zktest.OpGetData)) > 0 {
				t.Fatalf("after cut %d, Lock watches another node", i+1)
			}
			w.Must(mx.Unlock())
			<-healed
		}
		w.Delay(0)
	})
}
