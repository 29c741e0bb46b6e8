package zklock_test

import (
	"fmt"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A try that begins when the Unlock of another session has returned gets the lock, every time, also if the two sessions
// are connected to different servers.
func TestTryRightAfterUnlock(t *testing.T) {
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers, " servers"), func(t *testing.T) {
			tries := longtest.Pick(2000, 50)
			if servers > 1 {
				longtest.Only(t)
			}
			e := zktest.StartReal(t, zktest.Nodes(servers))
			ctx := t.Context()
			var all []*zklock.Mutex
			for i := range 3 {
				all = append(all, newMutex(t, testserver.Connect(t, e.Addr(i%servers)), "/locks/try"))
			}
			must(t, all[0].Lock(ctx))
			busy := 0
			for i := range tries {
				mine, next := all[i%len(all)], all[(i+1)%len(all)]
				must(t, mine.Unlock())
				got, err := next.TryLock(ctx)
				must(t, err)
				if !got {
					busy++
					must(t, next.Lock(ctx))
				}
			}
			if longtest.Covered(t, "%d tries right after an Unlock on %d servers, %d busy", tries, servers, busy); busy > 0 {
				t.Errorf("%d of %d tries found the lock busy", busy, tries)
			}
			must(t, all[tries%len(all)].Unlock())
		})
	}
}
