//go:build linux

package disks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// ZOOKEEPER-4882: the disk of a follower fails for a moment, and the server is restarted later. Then it misses the
// node of a holder, and a client of that server gets the lock beside the holder. Later versions of ZooKeeper notice
// the gap, and do not start. If the data of the server is wiped, it has all again.
func TestGap(t *testing.T) {
	longtest.Only(t)
	const timeout = 20 * time.Second
	for what, wipe := range map[string]bool{"restarted": false, "wiped": true} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t, 3)
			at := (s.leader() + 1) % 3
			holder := s.holderInGap(at, s.mutex(s.e.Addr((at+1)%3), path, timeout))
			s.must(s.e.Kill(at))
			if wipe {
				s.must(os.RemoveAll(filepath.Join(s.disks[at].dir, "data", "version-2")))
			}
			err := s.e.Start(s.ctx, at)
			if !wipe && err != nil && strings.Contains(err.Error(), "Committed proposal cached out of order") {
				longtest.Covered(t, "a follower's disk failed: the server refuses to start")
				return
			}
			s.must(err)
			got, err := s.mutex(s.e.Addr(at), path, timeout).TryLock(s.ctx)
			s.must(err)
			two := got && holder.Err() == nil
			longtest.Covered(t, "a follower's disk failed, and the server was %s: two holders %v", what, two)
			if two == wipe {
				t.Errorf("two holders: %v, want %v", two, !wipe)
			}
		})
	}
}

// holderInGap takes the lock, and leaves a follower without that in its log. What others commit while a write of the
// follower is stuck and then fails is in its memory only. It rejoins, and logs what comes later.
func (s *site) holderInGap(at int, mx *zklock.Mutex) *queue.Lease {
	s.Helper()
	before, _ := s.take(mx)
	s.must(before.Release(s.ctx))
	writer, reader := s.plain((at+1)%3), s.plain(at)
	s.must(s.disks[at].slow(time.Hour))
	s.must(s.disks[at].full(0))
	write(writer, 0, 1) // the write that is stuck
	holder, _ := s.take(mx)
	s.eventually("the follower to have the holder in its memory", func() bool {
		names, _, err := reader.Children(path)
		return err == nil && len(names) == 1
	})
	s.well() // now the write fails
	s.eventually("the server to stop serving", func() bool {
		_, err := s.e.Metrics(s.ctx, at)
		return err != nil
	})
	s.comeBack()
	if n := write(s.plain(at), 1, 5); n != 5 {
		s.Fatalf("%d of 5 writes acknowledged", n)
	}
	return holder
}
