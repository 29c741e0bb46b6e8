package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A server that is cut off from the others goes on for seconds before it notices. A follower answers
// pings and reads, and a leader also syncs and handshakes. No client relies on it for longer than the
// session timeout.
func TestServerAlone(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	const timeout = 12 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	e := &ensemble{Ensemble: zktest.StartReal(t, zktest.Nodes(3)), ctx: ctx}
	for what, behind := range map[string]int{"leader": 0, "follower": 1} {
		t.Run(what, func(t *testing.T) {
			alone := (e.leader(t) + behind) % e.Len() // another leader is elected each time
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
			known := waitDisbelief(t, timeout, func() bool { return lease.Err() == nil })
			t.Logf("known %v after the others were gone", known)
			wantErr(t, "lease", lease.Err(), session.ErrLost)
			receive(t, "the end of the lease", lease.Done())
			for i := range e.Len() {
				if i != alone {
					must(t, e.Resume(i))
				}
			}
			must(t, e.WaitReady(ctx))
		})
	}
}
