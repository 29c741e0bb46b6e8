package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A server that has lost touch with the others goes on for seconds before it notices: a
// follower answers pings and reads, a leader syncs and handshakes too. Nobody believes it
// for longer than the session timeout.
func TestServerAlone(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	e := &ensemble{Ensemble: zktest.StartReal(t, zktest.Nodes(3)), ctx: ctx}
	leader := e.leader(t)
	for what, alone := range map[string]int{"leader": leader, "follower": (leader + 1) % e.Len()} {
		t.Run(what, func(t *testing.T) {
			m := testserver.Connect(t, e.Addr(alone), session.WithTimeout(timeout))
			lease, err := newMutex(t, m, "/alone-"+what).Acquire(ctx)
			must(t, err)
			s := testserver.Session(t, m)
			// Held for longer than a timeout, with nothing to send but heartbeats.
			zktest.Eventually(t, testserver.Patience, "proof after proof", func() bool {
				must(t, lease.Err())
				return s.Remaining() < timeout*7/10
			})
			for i := range e.Len() {
				if i != alone {
					must(t, e.Pause(i))
				}
			}
			since := time.Now()
			<-lease.Done()
			known := time.Since(since)
			wantErr(t, "lease", lease.Err(), session.ErrLost)
			t.Logf("known %v after the others were gone", known)
			if known > timeout {
				t.Errorf("believed for %v, with a session timeout of %v", known, timeout)
			}
			for i := range e.Len() {
				if i != alone {
					must(t, e.Resume(i))
				}
			}
			must(t, e.WaitReady(ctx))
		})
	}
}
