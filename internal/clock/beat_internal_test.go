package clock

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Which heartbeats are due when. With a timeout of 20 s there is a ping each second, a round each 4 s,
// and a sync of an idle session each 6.67 s at most, with a ping in the middle.
func TestBeatDue(t *testing.T) {
	const timeout = 20 * time.Second
	start := time.Now()
	at := func(s float64) time.Time { return seconds(s).after(start) }
	for _, c := range []struct {
		name  string
		round float64 // when the last round began
		now   float64
		agree []float64
		f     facts
		want  []Duty
	}{
		{"idle, nothing due", 0, 3, nil, facts{}, nil},
		{"idle, a ping due", 0, 3.4, nil, facts{lastSent: at(3)}, []Duty{Ping}},
		{"idle, a sync due", 0, 6.7, nil, facts{}, []Duty{Sync}},
		{"idle, the round before could not prove much", 6, 10, nil, facts{}, []Duty{Sync}},
		{"idle, but that round is not a fifth of a timeout ago", 7, 10, nil, facts{}, []Duty{Ping}},
		{"idle, the write of a round is not needed any more", 0, 3, []float64{2}, facts{}, nil},
		{"slow and idle: as often as who owns nodes", 0, 4, nil, facts{slow: true}, []Duty{Sync}},
		{"slow and idle: pings too", 0, 3, nil, facts{slow: true, lastSent: at(2)}, []Duty{Ping}},
		{"owning, a ping due", 0, 3, nil, facts{owns: true, lastSent: at(2), proven: at(0)}, []Duty{Ping}},
		{"owning, the user has just sent something", 0, 3, nil, facts{owns: true, lastSent: at(2.5), proven: at(0)}, nil},
		{"owning, a round due", 0, 10, nil, facts{owns: true, proven: at(0)}, []Duty{Sync}},
		{"owning, the user's own requests prove enough", 0, 10, nil, facts{owns: true, lastSent: at(9.9), proven: at(6)}, nil},
		{"owning, the round before is not a fifth of a timeout ago", 7, 10, nil, facts{owns: true, lastSent: at(9.9), proven: at(0)}, nil},
		{"owning, what a slow answer held up came after the round before", 7, 8, nil, facts{owns: true, lastSent: at(7.9), proven: at(0), reach: at(6)}, []Duty{Sync}},
		{"owning, as much has been answered as time has passed", 7, 9.5, nil, facts{owns: true, lastSent: at(9.4), proven: at(0), reach: at(4.4)}, nil},
		{"owning, a write due", 9, 10, []float64{9.5, 12}, facts{owns: true, proven: at(0)}, []Duty{Agree}},
		{"owning, a write and the next round", 0, 10, []float64{9.5}, facts{owns: true, proven: at(0)}, []Duty{Agree, Sync}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := beat{timeout: timeout, round: at(c.round), reach: at(0)}
			for _, a := range c.agree {
				b.agree = append(b.agree, at(a))
			}
			c.f.half = time.Second
			if diff := cmp.Diff(c.want, b.due(at(c.now), c.f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBeatNext(t *testing.T) {
	start := time.Now()
	b := beat{timeout: 20 * time.Second}
	if got := b.next(start).Sub(start); got != time.Second {
		t.Errorf("looks again after %v", got)
	}
	b.syncs = append(b.syncs, 7)
	if b.answered(8, true, start) || !b.answered(7, true, start) || b.answered(7, true, start) {
		t.Error("only the sync of a round has a write follow it, and once")
	}
	b.syncs = append(b.syncs, 9)
	if b.answered(9, false, start) || len(b.syncs) != 0 {
		t.Error("a refused sync has no write follow it, and is forgotten")
	}
	if got := b.next(start).Sub(start); got != gap {
		t.Errorf("looks again after %v, want %v", got, gap)
	}
}

// idler is a session whose schedule runs in time of its own, by steps. It may own nodes, or have slow answers, for a
// while. Requests are answered in their order.
type idler struct {
	now, slowUntil time.Time
	lastSent       time.Time
	delay          time.Duration // until an answer comes
	owns           bool
	beat           beat
	trail          trail
	clock          *Clock
	flight         []exchange
	kinds          []int32
	proofs         []time.Time
}

const (
	idlerTimeout = 10 * time.Second
	idlerStep    = 10 * time.Millisecond
	slowest      = 250 * time.Millisecond // answers
)

func newIdler(greeting, half time.Duration) *idler {
	hello := time.Now()
	s := &idler{now: hello.Add(greeting), delay: time.Millisecond, clock: New(hello), trail: trail{half: half}}
	s.trail.begin(hello, s.now, idlerTimeout)
	s.trail.frames.res, s.trail.through.res = 0, 0 // so that bounds need not tell of requests that were left out
	s.beat.begin(s.now, idlerTimeout, false)
	s.clock.SetLease(idlerTimeout - standardMargin(idlerTimeout))
	s.clock.Prove(hello)
	return s
}

func (s *idler) send(op int32) {
	s.lastSent = s.now
	at := s.now.Add(s.delay)
	if n := len(s.flight); n > 0 && at.Before(s.flight[n-1].answered) {
		at = s.flight[n-1].answered
	}
	s.flight = append(s.flight, exchange{sent: s.now, answered: at})
	s.kinds = append(s.kinds, op)
	s.proofs = append(s.proofs, s.trail.proof(s.now))
}

func (s *idler) step() {
	s.now = s.now.Add(idlerStep)
	for len(s.flight) > 0 && !s.flight[0].answered.After(s.now) {
		f, op := s.flight[0], s.kinds[0]
		s.trail.answered(f.sent, f.answered, op != codec.OpPing)
		if s.now.Sub(f.sent) > idlerTimeout/slowPerTimeout {
			s.slowUntil = s.now.Add(idlerTimeout)
		}
		if op != codec.OpPing {
			s.clock.Heard(f.sent)
		}
		if op == codec.OpSync {
			s.beat.answered(1, true, s.now)
		}
		if op == codec.OpMulti {
			s.clock.Prove(s.proofs[0])
		}
		s.flight, s.kinds, s.proofs = s.flight[1:], s.kinds[1:], s.proofs[1:]
	}
	for _, d := range s.beat.due(s.now, facts{
		owns: s.owns, slow: s.now.Before(s.slowUntil), lastSent: s.lastSent,
		proven: s.clock.Proven(), reach: s.trail.reach(s.now), half: s.trail.half,
	}) {
		if d == Sync {
			s.beat.syncs = append(s.beat.syncs, 1)
		}
		s.send([]int32{codec.OpPing, codec.OpSync, codec.OpMulti}[d])
	}
}

// The first write of a session that has been idle proves enough for its lease to outlast slow commits, whatever came before
// it was idle: locks, or slow answers. It proves that the leader has touched the session half a timeout before it, or later.
// If ticks are long, that takes two timeouts, and until then it is 0.6 of a timeout.
func TestIdleProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.SampledFrom([]time.Duration{
			idlerStep, idlerTimeout / 10, idlerTimeout / 6, idlerTimeout / 5, idlerTimeout / 4,
		}).Draw(t, "half a tick")
		s := newIdler(idlerStep, half)
		for range rapid.IntRange(0, 5).Draw(t, "phases") {
			s.owns = rapid.Bool().Draw(t, "owns")
			s.delay = rapid.SampledFrom([]time.Duration{idlerStep, slowest / 2, slowest}).Draw(t, "delay")
			for range rapid.IntRange(1, 1500).Draw(t, "steps") {
				s.step()
			}
			if s.owns {
				s.send(codec.OpMulti) // the release
			}
		}
		s.owns, s.delay = false, idlerStep
		for i := range 3000 {
			s.step()
			idle := time.Duration(i) * idlerStep
			most := idlerTimeout / 2
			if half > idlerTimeout/10 && idle < 2*idlerTimeout {
				most = idlerTimeout * 6 / 10
			}
			most += gap + slowest + 5*idlerStep
			if age := s.now.Sub(s.trail.proof(s.now)); age > most && i > 50 {
				t.Fatalf("%v after it became idle, a write would prove what was %v ago, want %v at most", idle, age, most)
			}
		}
	})
}

// The first sync of an idle session comes early enough for it to live if the greeting and the answer to that sync take less
// than 73 % of the timeout together.
func TestIdleLivesWithSlowAnswers(t *testing.T) {
	for _, c := range []struct{ greeting, answers time.Duration }{
		{3 * time.Second, 3 * time.Second}, {3600 * time.Millisecond, 3600 * time.Millisecond},
		{4400 * time.Millisecond, 2800 * time.Millisecond}, {7 * time.Second, 10 * time.Millisecond},
	} {
		s := newIdler(c.greeting, idlerTimeout/10)
		s.delay = c.answers
		for since := time.Duration(0); since < 20*idlerTimeout; since += idlerStep {
			s.step()
			if s.clock.Remaining(s.now, false) <= 0 {
				t.Errorf("with a greeting that takes %v, and answers that take %v, the session is lost after %v", c.greeting, c.answers, since)
				break
			}
		}
	}
}

// After a sync, one ping is enough for a session that owns nothing. One that it sent while it owned nodes is too early.
func TestIdlePings(t *testing.T) {
	type step struct {
		after seconds
		owns  bool
		want  []Duty
	}
	for what, steps := range map[string][]step{
		"idle": {
			{4, false, []Duty{Ping}}, {5, false, nil}, {6, false, nil}, {7, false, []Duty{Sync}}, {8, false, nil}, {11, false, []Duty{Ping}},
		},
		"after owning": {
			{1.5, true, []Duty{Ping}}, {3, false, nil}, {3.4, false, []Duty{Ping}}, {3.5, false, nil},
		},
	} {
		start := time.Now()
		b := beat{timeout: 20 * time.Second, round: start, reach: start}
		for _, s := range steps {
			now := s.after.after(start)
			f := facts{owns: s.owns, half: time.Second, lastSent: start, proven: start, reach: now.Add(-3 * time.Second)}
			if diff := cmp.Diff(s.want, b.due(now, f)); diff != "" {
				t.Errorf("%s: after %v s (-want +got):\n%s", what, s.after, diff)
			}
		}
	}
}
