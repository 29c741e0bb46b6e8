//go:build linux

package disks

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// Locks wait for the disks of a quorum, and for no other disk, also if the client's server or the leader has
// it.
func TestSlow(t *testing.T) {
	longtest.Only(t)
	const delay, times = 300 * time.Millisecond, 10
	s := newSite(t, 3)
	leader := s.leader()
	follower, other := (leader+1)%3, (leader+2)%3
	for _, c := range []struct {
		what  string
		disks []int
		waits bool
	}{
		{"no disk", nil, false},
		{"a follower's", []int{follower}, false},
		{"the leader's", []int{leader}, false},
		{"both followers'", []int{follower, other}, true},
		{"all", []int{0, 1, 2}, true},
	} {
		for _, i := range c.disks {
			s.must(s.disks[i].slow(delay))
		}
		at := follower
		if len(c.disks) > 0 {
			at = c.disks[0]
		}
		mx := s.mutex(s.e.Addr(at), path, 20*time.Second)
		began := time.Now()
		for range times {
			lease, _ := s.take(mx)
			s.must(lease.Release(s.ctx))
		}
		each := time.Since(began) / times
		s.well()
		longtest.Covered(t, "slow disks: %s; each lock and unlock took %v", c.what, round(each))
		if c.waits && each < 2*delay {
			t.Errorf("%s: create and delete took %v, although a quorum's disks take %v", c.what, each, delay)
		}
	}
}

// The disks of a quorum stand still. The holder loses the lock in time, and nobody gets it. When the disks
// are well again, also if the leader has given up meanwhile, the waiter gets it.
func TestStandStill(t *testing.T) {
	longtest.Only(t)
	for _, until := range []string{"the holder has lost", "no server leads"} {
		t.Run(until, func(t *testing.T) {
			const timeout = 6 * time.Second
			s := newSite(t, 3)
			holder, _ := s.take(s.mutex(s.e.ConnectString(), path, timeout))
			granted := s.contend(s.mutex(s.e.ConnectString(), path, timeout))
			leader := s.leader()
			began := time.Now()
			for i := 1; i < 3; i++ {
				s.must(s.disks[(leader+i)%3].slow(time.Hour))
			}
			<-holder.Done()
			lost := time.Since(began)
			if until == "no server leads" {
				s.eventually("the leader to give up", func() bool {
					_, err := s.e.Leader(s.ctx)
					return err != nil
				})
			}
			stood := time.Since(began)
			select {
			case err := <-granted:
				t.Errorf("the waiter got the lock without a quorum: %v", err)
			default:
			}
			s.well()
			well := time.Now()
			s.must(<-granted)
			longtest.Covered(t, "disks stood still until %s: lost after %v, still for %v, handed over %v later",
				until, round(lost), round(stood), round(time.Since(well)))
		})
	}
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
