package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The quorum is away for longer than the session timeout. However long that lasts, the lost session is closed on the
// servers soon after they are back, so others need not wait until a new leader has counted its whole timeout.
//
// Broken rule: section 7, The end of a session: closing is tried until it is done, or the servers say that the session is gone.
func TestLongOutageClosesLostSession(t *testing.T) {
	const timeout = 6 * time.Second
	for _, outage := range []time.Duration{8 * time.Second, 12 * time.Second, 22 * time.Second, 2 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.Servers(3))
				m, s := virtually(t, srv.Hosts(), srv.Dialer(), session.WithTimeout(timeout))
				watcher, _ := virtually(t, srv.Hosts(), srv.Dialer(), session.WithTimeout(timeout))
				node := enter(t, s, "/d/own")
				began := time.Now()
				srv.StopServer(0)
				srv.StopServer(1)
				<-s.Done()
				time.Sleep(outage - time.Since(began)) //nolint:forbidigo // in a bubble
				must(t, srv.StartServer(0))
				must(t, srv.StartServer(1))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := m.Session(ctx)
				must(t, err)
				anew := time.Now()
				for {
					seen, err := watcher.Session(ctx)
					must(t, err)
					stat, err := seen.Exists(ctx, node.Path)
					if err == nil && stat == nil {
						break
					}
					time.Sleep(20 * time.Millisecond) //nolint:forbidigo // in a bubble
				}
				if d := time.Since(anew); d > timeout/3 {
					t.Errorf("the node of the lost session was there %v after its manager had a new session", d)
				}
			})
		})
	}
}
