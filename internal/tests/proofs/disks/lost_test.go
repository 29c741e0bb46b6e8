//go:build linux

package disks

import (
	"math"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// One server loses power. If it syncs its log, the next token is higher than all before. If it does not, its
// transaction numbers go back, and so do tokens: a store then refuses the new holder, and accepts a former
// one.
func TestTokenAfterPowerCut(t *testing.T) {
	for _, forceSync := range []string{"yes", "no"} {
		t.Run("forceSync="+forceSync, func(t *testing.T) {
			s := newSite(t, 1, zktest.Property("forceSync", forceSync))
			var before int64
			for range 5 {
				mx := s.mutex(s.e.ConnectString(), path, 4*time.Second)
				lease, token := s.take(mx)
				before = token
				s.must(lease.Release(s.ctx))
			}
			s.cutPower()
			_, after := s.take(s.mutex(s.e.ConnectString(), path, 4*time.Second))
			if grows := after > before; grows != (forceSync == "yes") {
				t.Errorf("token %#x after %#x", after, before)
			}
			longtest.Covered(t, "forceSync=%s: token %#x after %#x", forceSync, after, before)
		})
	}
}

// All servers lose power while the holder is cut off from them. If they sync their logs, the next contender
// gets the lock after the holder's session, and so after the holder has lost it. If they do not, the holder's
// node and its session are gone, and the next contender gets the lock at once.
func TestHolderAfterPowerCut(t *testing.T) {
	longtest.Only(t)
	for forceSync, timeout := range map[string]time.Duration{"yes": 10 * time.Second, "no": 40 * time.Second} {
		t.Run("forceSync="+forceSync, func(t *testing.T) {
			s := newSite(t, 3, zktest.Property("forceSync", forceSync))
			door := zktest.StartProxy(t, s.e.Addr(0))
			holder, before := s.take(s.mutex(door.Addr(), path, timeout))
			door.Blackhole(zktest.Both)
			cutOff := time.Now()
			s.cutPower()
			_, after := s.take(s.mutex(s.e.ConnectString(), path, timeout))
			two := holder.Err() == nil
			longtest.Covered(t, "forceSync=%s: two holders %v, token %#x after %#x", forceSync, two, after, before)
			if forceSync == "yes" && (two || after <= before) {
				t.Errorf("two holders: %v; token %#x after %#x", two, after, before)
			}
			// A busy machine can take longer to restart the servers than the holder's lease lasts.
			if forceSync == "no" && !two && time.Since(cutOff) < timeout*4/5 {
				t.Errorf("the contender did not get the lock beside the holder")
			}
		})
	}
}

// All servers lose power while a client writes. All acknowledged writes are there afterwards if they sync
// their logs.
func TestAcknowledgedAfterPowerCut(t *testing.T) {
	longtest.Only(t)
	for _, forceSync := range []string{"yes", "no"} {
		t.Run("forceSync="+forceSync, func(t *testing.T) {
			s := newSite(t, 3, zktest.Property("forceSync", forceSync))
			written := make(chan int)
			writer, reader := s.plain(0), s.plain(1)
			go func() { written <- write(writer, 0, math.MaxInt) }()
			s.eventually("the client to write", func() bool {
				there, _, err := reader.Exists(numbered(100))
				return err == nil && there
			})
			s.cutPower()
			n := <-written
			lost := s.missing(s.plain(0), n)
			longtest.Covered(t, "forceSync=%s: %d of %d acknowledged writes lost", forceSync, lost, n)
			if (lost > 0) != (forceSync == "no") {
				t.Errorf("%d of %d acknowledged writes lost", lost, n)
			}
		})
	}
}
