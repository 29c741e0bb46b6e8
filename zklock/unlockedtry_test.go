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
// are connected to different servers. One answer is excused: that of a leader to a client of its own. It tells the
// followers to commit before it commits itself, so a follower can confirm an Unlock earlier than the leader knows of
// it.
func TestTryRightAfterUnlock(t *testing.T) {
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers, " servers"), func(t *testing.T) {
			tries := longtest.Pick(50, 2000)
			if servers > 1 {
				longtest.Only(t)
			}
			for round := 1; !triesAfterUnlock(t, servers, tries); round++ {
				if round == 5 {
					t.Fatal("the leader has changed in each round")
				}
			}
		})
	}
}

// triesAfterUnlock returns false if another server has become the leader meanwhile: then nobody knows which answers are excused.
func triesAfterUnlock(t *testing.T, servers, tries int) bool {
	e := zktest.StartReal(t, zktest.Servers(servers))
	ctx := t.Context()
	var all []*zklock.Mutex
	for i := range 3 {
		all = append(all, newMutex(t, testserver.Connect(t, e.Addr(i%servers)), "/locks/try"))
	}
	leader := -1 // of a single server no answer is excused
	if servers > 1 {
		var err error
		leader, err = e.Leader(ctx)
		must(t, err)
	}
	must(t, all[0].Lock(ctx))
	busy, lagging := 0, 0
	for i := range tries {
		mine, next := all[i%len(all)], all[(i+1)%len(all)]
		must(t, mine.Unlock())
		got, err := next.TryLock(ctx)
		must(t, err)
		if !got {
			if (i+1)%len(all) == leader {
				lagging++
			} else {
				busy++
			}
			must(t, next.Lock(ctx))
		}
	}
	if servers > 1 {
		now, err := e.Leader(ctx)
		must(t, err)
		if now != leader {
			return false
		}
	}
	longtest.Covered(t, "%d tries right after an Unlock on %d servers, %d busy, and %d by a leader that lags behind its own commits",
		tries, servers, busy, lagging)
	if busy > 0 || lagging > tries/100 {
		t.Errorf("%d tries found the lock busy: %d, and %d by the leader", tries, busy, lagging)
	}
	must(t, all[tries%len(all)].Unlock())
	return true
}
