//go:build linux

package nemesis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/zktest"
)

const (
	servers = 3
	workers = 5
)

// strike is one fault of a round. It begins at At.
type strike struct {
	Kind      string
	Worker    int // anyone: the worker that holds the lock at that moment
	Server    int
	Peer      int // another server
	Direction zktest.Direction
	At, For   time.Duration
}

const anyone = -1

// String describes the fields that the kind uses; see kinds.
func (s strike) String() string {
	worker := fmt.Sprint("worker ", s.Worker)
	if s.Worker == anyone {
		worker = "the holder"
	}
	return fmt.Sprintf("%s at %v for %v (%s, server %d, %d, %v)", s.Kind,
		s.At.Round(time.Millisecond), s.For.Round(time.Millisecond), worker, s.Server, s.Peer, s.Direction)
}

// round has the faults before all is healed.
type round []strike

// schedule draws one round after another, without end, the same from the same seed.
type schedule struct {
	random  *rand.Rand
	timeout time.Duration // of sessions
	unused  []string      // each kind comes once before any comes again
}

func newSchedule(seed uint64, timeout time.Duration) *schedule {
	return &schedule{random: rand.New(rand.NewPCG(seed, 0)), timeout: timeout}
}

func (s *schedule) next() round {
	r := make(round, 1+s.random.IntN(3))
	for i := range r {
		r[i] = s.strike()
	}
	return r
}

func (s *schedule) strike() strike {
	server := s.random.IntN(servers)
	worker := s.random.IntN(workers)
	if s.random.IntN(2) == 0 {
		worker = anyone
	}
	directions := []zktest.Direction{zktest.ToServer, zktest.ToClient, zktest.Both}
	kind := s.kind()
	return strike{
		Kind:      kind,
		Worker:    worker,
		Server:    server,
		Peer:      (server + 1 + s.random.IntN(servers-1)) % servers,
		Direction: directions[s.random.IntN(len(directions))],
		At:        s.upTo(s.timeout),
		For:       s.duration(kind),
	}
}

func (s *schedule) kind() string {
	if len(s.unused) == 0 {
		s.unused = kindNames()
		s.random.Shuffle(len(s.unused), func(i, j int) { s.unused[i], s.unused[j] = s.unused[j], s.unused[i] })
	}
	k := s.unused[0]
	s.unused = s.unused[1:]
	return k
}

// duration draws a duration within a session's timeout, or beyond it. A fault that is over at once
// has none. A brief one is far below the timeout.
func (s *schedule) duration(kind string) time.Duration {
	if strings.HasPrefix(kind, "disconnect") {
		return 0
	}
	if strings.HasSuffix(kind, "briefly") {
		return s.timeout/8 + s.upTo(s.timeout/2) // the session is kept
	}
	if s.random.IntN(3) == 0 {
		return s.timeout/10 + s.upTo(s.timeout)
	}
	return s.timeout*11/10 + s.upTo(s.timeout)
}

func (s *schedule) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d)))
}

func TestScheduleFollowsSeed(t *testing.T) {
	draw := func(seed uint64) []round {
		s := newSchedule(seed, time.Second)
		var all []round
		for range 50 {
			all = append(all, s.next())
		}
		return all
	}
	if diff := cmp.Diff(draw(7), draw(7)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(draw(7), draw(8)) {
		t.Error("two seeds, one schedule")
	}
	drawn := make(map[string]bool)
	for _, r := range draw(7) {
		for _, s := range r {
			drawn[s.Kind] = true
		}
	}
	if len(drawn) != len(kinds) {
		t.Errorf("%d kinds of %d in 50 rounds", len(drawn), len(kinds))
	}
}
