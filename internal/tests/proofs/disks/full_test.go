//go:build linux

package disks

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// The disk of one server gets full in the middle of a write. The server stops serving. A client that may use the
// other servers gives its lock back there, and the waiter gets it. A client of that server alone loses its lock
// before the servers give it to a waiter. When there is room again the server comes back, and has all that was
// acknowledged meanwhile.
func TestFull(t *testing.T) {
	longtest.Only(t)
	for _, role := range []string{"follower", "leader"} {
		t.Run(role, func(t *testing.T) {
			const timeout = 10 * time.Second
			s := newSite(t, 3)
			at := s.leader()
			if role == "follower" {
				at = (at + 1) % 3
			}
			holder, _ := s.take(s.mutex(s.e.ConnectString(), path, timeout))
			granted := s.contend(s.mutex(s.e.ConnectString(), path, timeout))
			alone, _ := s.take(s.mutex(s.e.Addr(at), another, timeout))
			grantedAfter := s.contend(s.mutex(s.e.ConnectString(), another, timeout))
			writer := s.plain(at)
			written := write(writer, 0, 20)

			s.must(s.disks[at].full(300))
			began := time.Now()
			written = write(writer, written, 100)
			s.eventually("the server to stop serving", func() bool {
				_, err := s.e.Metrics(s.ctx, at)
				return err != nil
			})
			released := holder.Release(s.ctx)
			s.must(<-granted)
			next := time.Since(began)
			s.must(<-grantedAfter)
			if alone.Err() == nil {
				t.Error("two holders: the client of the server alone, and the next")
			}
			written = write(s.plain((at+1)%3), written, written+100)

			s.well()
			exited := s.comesBack(at)
			lost := s.missing(s.plain(at), written)
			s.must(s.e.Restart(s.ctx, at))
			lostLater := s.missing(s.plain(at), written)
			if lost != 0 || lostLater != 0 {
				t.Errorf("%d of %d acknowledged writes missing on the server, %d after its restart", lost, written, lostLater)
			}
			longtest.Covered(t, "the disk of the %s full: its process ended: %v; release: %v; the waiter has the lock after %v",
				role, exited, released, next.Round(time.Millisecond))
		})
	}
}

// comesBack waits until a server serves again, and starts it if its process has ended.
func (s *site) comesBack(i int) (ended bool) {
	s.Helper()
	s.eventually("the server to serve again", func() bool {
		ended = s.e.Launch(i) == nil || ended // it is an error while the process runs
		_, err := s.e.Metrics(s.ctx, i)
		return err == nil
	})
	return ended
}
