//go:build linux

package disks

import (
	"math"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// The disk of one server gets full in the middle of a write. The server stops serving. A client that may use
// the other servers gives its lock back there, and the waiter gets it. A client of that server alone loses
// its lock before the servers give it to a waiter. When there is room again the server comes back, and has
// all that was acknowledged meanwhile.
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
			ended := s.comeBack()
			lost := s.missing(s.plain(at), written)
			s.must(s.e.Restart(s.ctx, at))
			lostLater := s.missing(s.plain(at), written)
			if lost != 0 || lostLater != 0 {
				t.Errorf("of %d acknowledged writes %d missing, %d after a restart", written, lost, lostLater)
			}
			longtest.Covered(t, "disk of the %s full: %d processes ended; release: %v; lock handed over after %v",
				role, ended, released, next.Round(time.Millisecond))
		})
	}
}

// comeBack waits until all servers serve again, and starts those whose process has ended. It returns how many
// had.
func (s *site) comeBack() int {
	s.Helper()
	ended := make(map[int]bool)
	s.eventually("all servers to serve again", func() bool {
		serving := 0
		for i := range s.disks {
			if s.e.Launch(i) == nil { // it is an error while the process runs
				ended[i] = true
			}
			if _, err := s.e.Metrics(s.ctx, i); err == nil {
				serving++
			}
		}
		return serving == len(s.disks)
	})
	return len(ended)
}

// The disks of all servers get full. The holder loses its lock in time, and nobody gets it. When there is
// room again, the waiter gets the lock, and all acknowledged writes are there.
func TestAllFull(t *testing.T) {
	longtest.Only(t)
	const timeout = 6 * time.Second
	s := newSite(t, 3)
	holder, _ := s.take(s.mutex(s.e.ConnectString(), path, timeout))
	granted := s.contend(s.mutex(s.e.ConnectString(), path, timeout))
	writer := s.plain(0)
	for _, d := range s.disks {
		s.must(d.full(1000))
	}
	written := write(writer, 0, math.MaxInt)
	<-holder.Done()
	select {
	case err := <-granted:
		t.Errorf("the waiter got the lock although no disk has room: %v", err)
	default:
	}
	s.well()
	ended := s.comeBack()
	s.must(<-granted)
	for i := range s.disks {
		if lost := s.missing(s.plain(i), written); lost > 0 {
			t.Errorf("server %d misses %d of %d acknowledged writes", i, lost, written)
		}
	}
	longtest.Covered(t, "all disks full after %d writes: %d of 3 processes ended", written, ended)
}
